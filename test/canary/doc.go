// Package canary puts values of its own into every Secret that Machines use, runs the real manager, engines and command line, and looks for the
// values where those read who may not read Secrets.
package canary
