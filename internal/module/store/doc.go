// Package store keeps the content of provider modules in Secrets, once for each content, so that what a Machine was made with is
// still there when the operator comes with another. docs/contracts/state.md shows the layout.
package store
