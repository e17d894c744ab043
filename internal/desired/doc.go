// Package desired determines a Machine's desired state: the module that serves it, the module's
// inputs, and the place of its instance. It reads Secrets and modules from the cluster and writes
// nothing. The actuator executes its [State]; live previews plan it.
//
// A Machine stays on the module that created its instance, its pinned module, unless
// [ModuleUpdates] allows an update to the current one. [Reader.Choose] returns the desired state
// for an operation: with the pinned module, with the current one, or with the inputs applied last.
package desired
