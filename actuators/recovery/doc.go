// Package recovery deals with what a manager process that died has left: its locks on states, its abandoned runs, and the states that its engines
// could not save. Nothing of it is dropped that may be all that is known of a resource.
package recovery
