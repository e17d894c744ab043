// Package stacks carries the stacks of this repository, one folder each: provider modules whose programs Pulumi runs.
// docs/contracts/stack.md says what a stack is.
package stacks

import "embed"

// FS holds every stack in a folder of its name.
//
//go:embed all:aws all:kubemark all:openstack
var FS embed.FS
