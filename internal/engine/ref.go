package engine

import "strings"

// instanceName is the name that the module contract gives the resource that is the instance.
const instanceName = "this"

// Ref identifies a resource by more than its address, which is ambiguous: types and names may
// contain dots.
type Ref struct {
	// Module is the address of the module instance, or empty for the root module.
	Module string
	// Name is the resource's name, without type and index.
	Name string
	// Data is true for data sources and for resources that a stack only reads.
	Data bool
}

// Instance reports whether the resource is the instance.
func (r Ref) Instance() bool { return r.Module == "" && r.Name == instanceName && !r.Data }

// within returns the Ref as seen from inside a module call. The resource must be in it.
func (r Ref) within(call string) Ref {
	r.Module = strings.TrimPrefix(strings.TrimPrefix(r.Module, call), ".")
	return r
}
