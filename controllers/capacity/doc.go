// Package capacity annotates each MachineSet with the capacity of its Machines, so that a cluster autoscaler can scale it from zero.
//
// The capacity comes from the actuator, which knows it from the providerSpec alone, for every provider whose module has it. It is written
// as annotations, by a merge patch, and only when they differ:
//
//   - machine.openshift.io/vCPU, machine.openshift.io/memoryMb (MiB), machine.openshift.io/GPU, which the autoscaler of OpenShift reads
//   - capacity.cluster-autoscaler.kubernetes.io/cpu, memory, gpu-count and gpu-type, which upstream's reads too, and OpenShift's first
//   - capacity.cluster-autoscaler.kubernetes.io/labels and taints: those that the template has, and kubernetes.io/arch, among entries of
//     others, which take precedence
//   - capacity.cluster-autoscaler.kubernetes.io/maxPods: as in machine.openshift.io/maxPods, which only a person knows
//   - machine-iac.io/capacity-labels, capacity-taints and capacity-max-pods: what of the shared annotations this controller has written
//
// A value of somebody else stays. One that says the same as the annotation of machine.openshift.io was derived from that, by this controller or
// by OpenShift's cluster-autoscaler-operator, and follows it.
//
// Where the capacity is not known, annotations stay as they are: they may have been set by hand.
//
// # What differs from the Machine API Operator
//
//   - There the cluster-autoscaler-operator adds the annotations of upstream, once, for MachineSets that have a MachineAutoscaler. Here they are
//     always there, and follow the instance type.
//   - Entries of the labels annotation keep their order, so that a MachineSet is not written again and again.
//   - An entry that was written for one template is updated with the next.
//
// # Permissions
//
//   - machine.openshift.io machinesets: get, list, watch, patch
//   - events.k8s.io events: create, patch
package capacity
