// Package failure describes failed engine operations: their diagnostics, and the class that
// determines how an error is handled.
package failure
