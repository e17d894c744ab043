// Package machine reconciles Machines: it calls an actuator to check, create, update or delete the
// instance, and reports in phase, conditions and error fields. The order of the steps, phases,
// conditions and reasons are those of OpenShift's Machine API. The deletion of an instance waits
// until the drain controller has set the condition Drained to True.
//
// Permissions, in the namespace of the Machines: machines get, list, watch, patch; machines/status
// patch; events (events.k8s.io) create, patch. In the cluster: nodes get, list,
// watch, delete.
package machine
