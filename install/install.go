// Package install carries the manifests that machine-api-operator applies, and its own.
package install

import "embed"

// FS has a folder each for the controllers, the termination handler, monitoring, and vSphere's admission policies. CRDs
// are not among them.
//
//go:embed controllers monitoring termination-handler vsphere
var FS embed.FS

// Operator has the folder kubernetes/operator: what the operator consists of, besides the CRDs.
//
//go:embed kubernetes/operator
var Operator embed.FS
