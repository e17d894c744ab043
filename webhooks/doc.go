// Package webhooks reports to the author of a Machine, a MachineSet or a MachineHealthCheck what is wrong with it when it is
// applied, one file a kind. Each decision is a pure function over the object as it was and as it is to be; around it stand only the
// admission interfaces and, for warnings, a look at whether Secrets exist.
//
// A providerSpec is held to the types and the validations of the module that serves its kind, in-process. A refusal lists every
// problem with its field, the wrong value and the fix.
//
// # What is never refused
//
//   - an update of an object that is being deleted and whose spec stays as it was, so that finalizers can always go
//   - what was wrong before the update already, where the object is being deleted or the update leaves the providerSpec alone: a
//     rule that came later is a warning
//
// # What differs from the Machine API Operator
//
//   - A refusal names the field where it stands, and the module "aws" has the Machine API Operator's whole text in it.
//   - A kind that no loaded module serves is refused. It is known by the providerSpec, not by the cluster's platform.
//   - All unknown fields are named, not the first only, and so are all problems.
//   - A template is held to the labels that it gives its Machines.
//   - There is a webhook for MachineHealthChecks, which also keeps out durations that pass the schema and that no client can read.
package webhooks
