package engine

import "strings"

// instanceName is what the contract of modules and stacks calls the resource that is the instance.
const instanceName = "this"

// Ref identifies a resource by what an engine reports beside the address. Types and names may have dots, so an address is ambiguous.
type Ref struct {
	// Module is the address of the module instance, empty for the root.
	Module string
	// Name is the resource's, without type and index.
	Name string
	// Data is true for a data source, and for what a stack only reads.
	Data bool
}

// Instance reports whether the resource is the one that the module contract calls the instance.
func (r Ref) Instance() bool { return r.Module == "" && r.Name == instanceName && !r.Data }

// within returns the Ref as it is inside of a call of a module. The resource must be in it.
func (r Ref) within(call string) Ref {
	r.Module = strings.TrimPrefix(strings.TrimPrefix(r.Module, call), ".")
	return r
}
