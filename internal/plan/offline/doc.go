// Package offline plans a module with its engine and nothing else: no credentials, no network, no state. It knows no Kubernetes. Package
// program does the same for stacks.
//
// What only the infrastructure or the cluster knows is unknown to the engine itself, so nothing that is made from it can come out as a
// value. There are three sources of such values:
//
//   - Resources. The engine talks to a stub provider, see package stub.
//   - Data sources. They depend on a resource that is yet to be created, so the engine defers them until an apply.
//   - Variables. The module is called by a root module, which gives it unknown values where [Input] marks them.
//
// A module is initialised once, and the schemas that it uses are kept with it; from then on a plan starts no provider before its
// arguments have to be validated.
package offline
