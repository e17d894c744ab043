// Package workdir manages the folder that an engine works in: the folder itself and its lock, the
// secret files of a run and the environment variables with their paths, and the processes that run
// inside it.
package workdir
