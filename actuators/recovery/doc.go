// Package recovery cleans up after a dead manager process: its locks on states, its abandoned runs,
// and the states that its engines failed to save. It never drops what may be the only record of a
// resource.
package recovery
