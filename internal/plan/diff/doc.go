// Package diff turns a plan into changes: the values of each resource as attributes with paths, what a change does to each, and which of
// them force a replacement. It keeps apart what is known, what is known after an apply, and what must not be shown.
package diff
