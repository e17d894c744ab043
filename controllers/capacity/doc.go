// Package capacity annotates each MachineSet with the capacity of its Machines, so that a cluster autoscaler can scale it from zero.
//
// The capacity comes from the actuator, which knows it from the providerSpec alone, for every provider whose module has it. It is written
// as annotations, by a merge patch, and only when they differ:
//
//   - machine.openshift.io/vCPU, machine.openshift.io/memoryMb (MiB), machine.openshift.io/GPU
//   - capacity.cluster-autoscaler.kubernetes.io/labels: kubernetes.io/arch among pairs of others, which take precedence
//   - machine-iac.io/capacity-labels: which of these pairs this controller has written
//
// Where the capacity is not known, annotations stay as they are: they may have been set by hand.
//
// # What differs from the Machine API Operator
//
//   - Pairs of the labels annotation keep their order, so that a MachineSet is not written again and again.
//   - A pair that was written for one instance type is updated with the next, as machine-iac.io/capacity-labels distinguishes it from a
//     pair that a person wrote.
//
// # Permissions
//
//   - machine.openshift.io machinesets: get, list, watch, patch
//   - events.k8s.io events: create, patch
package capacity
