// Package capacity writes on each MachineSet how large one of its Machines is, so that a cluster autoscaler can grow it from zero.
//
// The size comes from the actuator, which knows it from the providerSpec alone; every provider whose module tells it is served. What
// is written are annotations, by a merge patch on the metadata, and only when they differ:
//
//   - machine.openshift.io/vCPU, machine.openshift.io/memoryMb (MiB), machine.openshift.io/GPU
//   - capacity.cluster-autoscaler.kubernetes.io/labels: kubernetes.io/arch among pairs of others, who win
//   - machine-iac.io/capacity-labels: which of these pairs are from here
//
// Where the size is not known, annotations stay as they are: somebody may have written them by hand.
//
// # What differs from the Machine API Operator
//
//   - Pairs of the labels annotation keep their order, so that a MachineSet is not written again and again.
//   - A pair that was written for one instance type is brought up to date with the next; the record tells it from one that a
//     person wrote.
//
// # Permissions
//
//   - machine.openshift.io machinesets: get, list, watch, patch
//   - events.k8s.io events: create, patch
package capacity
