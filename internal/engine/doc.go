// Package engine has the types in which engines report what they do, so that a caller need not know which one runs: the [Report] of an
// operation, and the [Event]s while it runs. What is known of one that failed is in package failure.
//
// Packages that drive an engine convert its output to these types, and remove sensitive values (package redact).
package engine
