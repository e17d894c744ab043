// Package install carries the manifests that machine-api-operator applies.
package install

import "embed"

// FS has a folder each for the controllers, the termination handler and monitoring. CRDs are not among them.
//
//go:embed controllers monitoring termination-handler
var FS embed.FS
