// Package offline plans modules and stacks with nothing but their engines: no credentials, no network, no state. It
// does not know Kubernetes.
//
// What only the infrastructure or the cluster knows is unknown to the engine itself, so nothing derived from it can
// appear as a value. Unknown values have three sources:
//
//   - Resources. The engine talks to a stub provider by the plugin protocol. The stub plans by the real provider's
//     schemas: configured values are known, computed values are unknown. It is never configured, and rejects calls that
//     need the infrastructure. The real provider validates arguments, which needs neither configuration nor network.
//     With a prior state, the stub also plans changes, and reads data sources from the state.
//   - Data sources. They depend on a resource that does not exist yet, so the engine defers them until an apply.
//   - Variables. A root module calls the module with unknown values where [Input] marks them.
//
// A module is initialised once, and the schemas that it uses are cached with it. After that, a plan starts a provider
// only to validate arguments.
//
// For a stack, Pulumi previews the program against an empty checkpoint. Only programs in YAML can be planned, because
// they can be read and changed:
//
//   - For each Terraform provider, Pulumi's bridge finds a stub binary in its mirror, which leads to a stub provider.
//   - Repetitions in a program are written out, as for a run.
//   - Unknown values replace function calls, and resources that the program reads.
//   - References to unknown variables lead to a resource that does not exist yet. Known values stay configuration,
//     hence data.
//
// Each input of a stack takes a process of its own.
package offline
