// Package store keeps the content of provider modules in Secrets, once for each content, so that
// the module that a Machine was created with is still available when the operator ships another
// one. docs/contracts/state.md describes the layout.
package store
