// Package install carries the manifests that machine-api-operator applies, and its own.
package install

import "embed"

// FS has a folder each for the controllers, the termination handler and monitoring. CRDs are not among them.
//
//go:embed controllers monitoring termination-handler
var FS embed.FS

// Operator has the folder kubernetes/operator: what the operator consists of, besides the CRDs.
//
//go:embed kubernetes/operator
var Operator embed.FS
