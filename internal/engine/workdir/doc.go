// Package workdir manages the folder on disk that an engine works in: the folder itself and its lock, the secret files of a run and the
// environment variables that name them, and the processes that work inside of it.
package workdir
