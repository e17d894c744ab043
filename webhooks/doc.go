// Package webhooks tells the author of a Machine, a MachineSet or a MachineHealthCheck what is
// wrong with it when it is applied, one file per kind. Each decision is a pure function of the old
// and the new object. Around it are only the admission interfaces and, for warnings, checks that
// Secrets exist.
//
// A providerSpec is validated in-process against the types and validations of the module that
// serves its kind. A rejection lists every problem with its field, the wrong value and the fix.
//
// # What is never rejected
//
//   - an update of an object that is being deleted and whose spec is unchanged, so that finalizers
//     can always be removed
//   - a fault that existed before the update, if the object is being deleted or the providerSpec is
//     unchanged: a newer rule is only a warning
//
// # What differs from the Machine API Operator
//
//   - A rejection names the field where it is, and the module "aws" includes the Machine API
//     Operator's full text.
//   - A kind that no loaded module serves is rejected. The kind is determined by the providerSpec,
//     not by the cluster's platform.
//   - All unknown fields and all problems are reported, not only the first.
//   - A template is validated with the labels that it gives its Machines.
//   - A webhook for MachineHealthChecks also rejects durations that pass the schema but that no
//     client can read.
package webhooks
