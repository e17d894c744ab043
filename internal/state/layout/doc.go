// Package layout decides where a state and the versions before it are placed in Secrets, and reads and writes the record of that. It is pure: it
// knows bytes and annotations, and neither the API server nor locks.
package layout
