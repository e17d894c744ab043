// Package machineset keeps as many Machines as each MachineSet asks for.
//
// A reconcile runs a list of steps, one per file, over one [scope]: who is in charge (authority), is the MachineSet sound
// (validation), which Machines are its replicas (claim), what they amount to (observation), has what was done before become
// visible (settling), and then more Machines (creation) or fewer (deletion). Steps change the MachineSet's status in memory; it
// is written once, at the end, when it differs.
//
// # What differs from the Machine API Operator
//
//   - No worker waits for the cache. What was created or deleted is remembered in [inFlight] until the cache shows it. When this
//     memory is missing (after a restart) or runs out of time, the API server is asked; it is never guessed.
//   - A Machine whose labels no longer match is released: it loses its owner reference, so that it outlives the MachineSet.
//   - Among Machines of equal priority, the policy Random picks at random.
//   - Nodes are watched here, so that a Node that turns Ready or NotReady counts at once. NodeLink need not rewrite Machines.
//
// # Permissions
//
//   - machine.openshift.io machinesets: get, list, watch
//   - machine.openshift.io machinesets/status: patch
//   - machine.openshift.io machinesets/finalizers: update (an owner reference that blocks deletion asks for it on OpenShift)
//   - machine.openshift.io machines: get, list, watch, create, patch, delete
//   - core nodes: get, list, watch
//   - events.k8s.io events: create, patch
package machineset
