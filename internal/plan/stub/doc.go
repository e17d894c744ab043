// Package stub serves stub providers: engines talk to them in place of real ones, by the plugin protocol.
//
// A stub provider has the provider's schemas and plans by them: what the configuration sets is known, and what the provider computes is
// unknown. It is never configured, and a call that needs the infrastructure is an error. Arguments are validated by the provider itself,
// which needs neither configuration nor network for that. With a prior state it also plans changes, by the provider itself where that works
// without configuration, and returns data sources from the state.
//
// A stub binary leads Pulumi's bridge to a stub provider.
package stub
