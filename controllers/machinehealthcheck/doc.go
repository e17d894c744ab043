// Package machinehealthcheck remediates Machines whose Nodes are not well.
//
// A reconcile runs a list of steps, one per file, over one [scope]: is the MachineHealthCheck paused (pause), can it be read
// (legibility), which Machines does
// it watch over (selection), how does each do (diagnosis), what does the remediation template amount to (requests), may anything
// be done (allowance), do it (remediation), and take back what is no longer wanted (cleanup). Steps change the status in memory;
// it is written once, at the end, when it differs, and only when nobody has written since.
//
// # Annotations on a MachineHealthCheck
//
//   - cluster.x-k8s.io/paused: while it is there, whatever its value, nothing is done and the status stays.
//   - machine.openshift.io/remediation-strategy "external-baremetal": Machines that have not Failed get the annotation
//     host.metal3.io/external-remediation instead of being deleted.
//   - machine-iac.io/exempt-starting-machines "true": Machines that have no Node yet and are within nodeStartupTimeout do not use up
//     maxUnhealthy. status.expectedMachines and status.currentHealthy count them as ever; the short circuit and
//     status.remediationsAllowed leave them out. With nodeStartupTimeout "0" no Machine is ever past its start, so none is exempt.
//   - machine-iac.io/max-remediations-in-flight: how many Machines may be under remediation at a time, as a number or as a
//     percentage of status.expectedMachines, rounded down but at least 1. In flight are targets that are being deleted, for whatever
//     reason, have an external remediation request, or carry host.metal3.io/external-remediation.
//
// A value that cannot be read gives the Warning event InvalidAnnotation. Then the safe side is taken: no Machine is exempt, and at
// most one remediation is in flight.
//
// # What differs from the Machine API Operator
//
//   - While short-circuited it waits for events and for the time when the next Machine is due; it does not spin.
//   - The start-up time-out counts from the Machine's creation, or from when its instance was there, and not from the last write of its
//     status, which every try to make the instance moves. A Machine whose status was never written has the whole time ahead.
//   - The oldest trouble is remediated first.
//   - That a Node is gone is asked of the API server before its Machine is remediated.
//   - Events that tell of a state are sent when the state begins or its numbers change, and after a restart.
//   - The conditions about the remediation template are stored, and turn True again when the cause is mended. Requests of healthy
//     Machines are deleted while short-circuited too, and only those that the Machine owns.
//   - A spec with a value that its Go type cannot hold stops this one MachineHealthCheck, and no other.
//   - maxUnhealthy that cannot be read stops remediation and is shown in the condition RemediationAllowed; so is a selector.
//   - What was just deleted or annotated is remembered until the cache shows it, so that nothing is done, told or counted twice.
//   - The series of a deleted MachineHealthCheck are removed. One that is being deleted does nothing any more.
//
// # Permissions
//
//   - machine.openshift.io machinehealthchecks: get, list, watch
//   - machine.openshift.io machinehealthchecks/status: patch
//   - machine.openshift.io machines: get, list, watch, patch, delete
//   - core nodes: get, list, watch
//   - events.k8s.io events: create, patch
//   - kinds of remediation templates: get; kinds of their requests: list, create, delete. They are not known in advance; who brings
//     them grants these.
package machinehealthcheck
