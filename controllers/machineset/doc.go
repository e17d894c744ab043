// Package machineset keeps each MachineSet at its desired number of Machines.
//
// A reconcile runs a list of steps, one per file. It checks that the Machine API is authoritative
// (checkAuthority) and the spec is valid (validateSpec), finds the replicas (claimMachines), and
// computes the status (summarizeReplicas, compareTemplate). It stops if too many Machines were created
// already (limitCreation). If Machines are missing or surplus, it reads the replicas from the API
// server (readLive) and scales up (createMachines) or down (deleteMachines). Steps change the
// MachineSet's status in memory; it is written once, at the end, if it differs.
//
// # What differs from the Machine API Operator
//
//   - No worker blocks until the cache is up to date. What was created or deleted is tracked in
//     [inFlight] until the cache shows it, or a timeout has passed. Before a Machine is created or
//     deleted, the API server is read.
//   - A Machine whose labels no longer match is released: it loses its owner reference, so that it
//     outlives the MachineSet.
//   - Among Machines of equal priority, the policy Random picks at random.
//   - Nodes are watched here, so that a change of their readiness counts at once. NodeLink need not
//     rewrite Machines.
//
// # Permissions
//
//   - machine.openshift.io machinesets: get, list, watch
//   - machine.openshift.io machinesets/status: patch
//   - machine.openshift.io machinesets/finalizers: update (an owner reference that blocks deletion
//     asks for it on OpenShift)
//   - machine.openshift.io machines: get, list, watch, create, patch, delete
//   - core nodes: get, list, watch
//   - events.k8s.io events: create, patch
package machineset
