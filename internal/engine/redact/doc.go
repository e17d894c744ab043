// Package redact prepares engine output for people: it removes sensitive strings and then
// truncates.
package redact
