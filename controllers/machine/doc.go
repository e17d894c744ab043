// Package machine reconciles Machines: it asks an actuator whether the instance exists, has it made, kept or removed, and tells in
// phase, conditions and error fields how things stand. The order of steps, phases, conditions and reasons are those of OpenShift's
// Machine API. A Machine that is being deleted goes on once the drain controller has set its condition Drained to True.
//
// Rights it needs, in the namespace of the Machines: machines get, list, watch, patch; machines/status patch; events
// (events.k8s.io) create, patch. In the cluster: nodes delete.
package machine
