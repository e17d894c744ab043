// Package failure is what is known of an engine's operation that failed: its diagnostics, and the class that says how the error is to be handled.
package failure
