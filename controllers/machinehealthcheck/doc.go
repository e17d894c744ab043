// Package machinehealthcheck remediates unhealthy Machines.
//
// A reconcile runs a list of steps, one per file: is the MachineHealthCheck paused (checkPaused),
// is its spec valid (validateSpec), which Machines does it select (selectTargets), is each of them
// healthy (checkHealth), the remediation template and its requests (readRequests), is remediation
// allowed (checkMaxUnhealthy), and what to do with each Machine (planRemediation). These steps read
// the cache. If they decide to remediate, they run again and read the API server. The last steps
// act: remediate, and delete the requests of healthy Machines (deleteRequests). Steps change the
// status in memory; it is written once, at the end, when it differs.
//
// # Annotations on a MachineHealthCheck
//
//   - cluster.x-k8s.io/paused: with any value, nothing is done and the status stays.
//   - machine.openshift.io/remediation-strategy "external-baremetal": Machines that have not Failed
//     get the annotation host.metal3.io/external-remediation instead of being deleted.
//   - machine-iac.io/exempt-starting-machines "true": Machines that have no Node yet and are within
//     nodeStartupTimeout do not count against maxUnhealthy. status.expectedMachines and
//     status.currentHealthy still count them; the short circuit and status.remediationsAllowed
//     leave them out. With nodeStartupTimeout "0" no Machine is ever past its start, so none is
//     exempt.
//   - machine-iac.io/max-remediations-in-flight: how many Machines may be under remediation at a
//     time, as a number or as a percentage of status.expectedMachines, rounded down but at least 1.
//     In flight are targets that are being deleted, for whatever reason, have an external
//     remediation request, or carry host.metal3.io/external-remediation.
//
// An invalid value is reported by the Warning event InvalidAnnotation. Then no Machine is exempt,
// and at most one remediation is in flight.
//
// # What differs from the Machine API Operator
//
//   - While short-circuited it waits for events and for the time when the next Machine is due,
//     without polling.
//   - The startup timeout counts from the start of the create, or from when the instance was there,
//     and not from the last write of the status, which every attempt to create the instance moves.
//     A Machine whose create waits for its turn, or whose status was never written, has the full
//     timeout. A Machine that starts is not reported as unhealthy before the timeout.
//   - If a transition of a Node's condition is in the future, it counts from as much earlier as the
//     Node's clock is ahead.
//   - The Machine that has been unhealthy for longest is remediated first.
//   - Before a Machine is remediated, the MachineHealthCheck, Machines, MachineSets and Nodes are
//     read from the API server.
//   - In its first seconds ([Options.Settle]), nothing is remediated.
//   - A Machine that a MachineSet has yet to create is expected, and counts against maxUnhealthy.
//     So a Machine that was deleted counts until its replacement is healthy. Machines of other
//     controllers count while they exist.
//   - Events about a state are sent when the state begins or its numbers change, and after a
//     restart.
//   - The conditions about the remediation template are stored, and become True again when the
//     cause is fixed. Requests of healthy Machines are deleted while short-circuited too, and only
//     those that the Machine owns.
//   - A spec with a value that its Go type cannot represent stops this MachineHealthCheck only.
//   - An invalid maxUnhealthy or selector stops remediation and is reported in the condition
//     RemediationAllowed.
//   - The metrics of a deleted MachineHealthCheck are removed. One that is being deleted does
//     nothing.
//
// # Permissions
//
//   - machine.openshift.io machinehealthchecks: list, watch
//   - machine.openshift.io machinehealthchecks/status: patch
//   - machine.openshift.io machines: get, list, watch, patch, delete
//   - machine.openshift.io machinesets: list, watch
//   - core nodes: get, list, watch
//   - events.k8s.io events: create, patch
//   - kinds of remediation templates: get; kinds of their requests: list, create, delete. Whoever
//     installs these kinds grants the permissions.
package machinehealthcheck
