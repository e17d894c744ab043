// Package canary stores unique values in every Secret that Machines use, runs the real manager, engines and command
// line, and searches for the values where people without access to Secrets can read.
package canary
