// Package engine has the types that engines report in, so that callers need not know which engine
// runs: the [Report] of an operation, and the [Event]s while it runs. Failures are in package
// failure.
//
// Packages that drive an engine convert its output to these types and remove sensitive values with
// package redact.
package engine
