// Package install carries the manifests that machine-api-operator applies.
package install

import "embed"

// Controllers is what the controllers need, but for the CRDs, in the folder "controllers".
//
//go:embed controllers
var Controllers embed.FS
