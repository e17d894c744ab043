// Package offline plans a module or a stack with its engine and without anything else: no credentials, no network, no state. It knows
// no Kubernetes.
//
// What only the infrastructure or the cluster knows is unknown to the engine itself, so that nothing which is made from it can come
// out as a value. There are three sources of such values, and each is closed in its own way:
//
//   - Resources. The engine talks to a stand-in for each provider, which has the provider's schemas and answers a plan as the schema
//     says: what the configuration gives is known, and what is left to the provider is not. It is never configured, and a call that
//     would reach the infrastructure is an error.
//   - Data sources. They are made to depend on a resource that is yet to be created, so that the engine puts them off until an apply.
//   - Variables. The module is called by a root module, which gives it values that are not known before an apply where [Input] says so.
//
// The arguments of resources and data sources are still checked by the provider itself, which needs neither configuration nor network
// for that.
//
// A stack is planned with Pulumi in the same way:
//
//   - The bridge to Terraform's providers finds an executable in its mirror that leads it to the stand-in.
//   - What a program reads, with functions and resources that there are, is replaced in the program by what is not known.
//   - So are its references to variables that are not known: they lead to a resource that is yet to be created. What is known stays
//     configuration, hence data.
//
// That is possible for programs in YAML, which can be read. Each input takes a process of its own.
//
// A module is initialised once, and what is needed of its providers' schemas is kept with it; from then on a plan starts no provider
// before its arguments have to be checked.
package offline
