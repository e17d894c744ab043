// Package modules carries the provider modules of this repository, one folder each. docs/contracts/module.md says what a
// provider module is.
package modules

import "embed"

// FS holds every module in a folder of its name. "all:" keeps the lock files, whose names start with a dot.
//
//go:embed all:aws all:azure all:gcp all:kubemark all:libvirt all:nutanix all:openstack all:vsphere
var FS embed.FS
