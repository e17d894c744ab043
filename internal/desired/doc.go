// Package desired finds out what a Machine asks for: the module that serves it, the inputs that the module is rendered with, and where its
// instance is to be. It reads Secrets and modules from the cluster and writes nothing. The actuator carries its [State] out; live previews plan it.
//
// A Machine stays with the module that its instance was made with, its pinned module, unless [ModuleUpdates] lets it get the current one.
// [Reader.Choose] returns the desired state for an operation: with the pinned module, with the current one, or with the inputs that were
// applied last.
package desired
