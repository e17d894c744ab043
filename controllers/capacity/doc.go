// Package capacity annotates each MachineSet with the capacity of its Machines, so that a cluster
// autoscaler can scale it from zero.
//
// The capacity comes from the actuator, which derives it from the providerSpec if the provider's
// module supports that. It is written as annotations by a merge patch, and only if they differ:
//
//   - machine.openshift.io/vCPU, machine.openshift.io/memoryMb (MiB), machine.openshift.io/GPU:
//     read by OpenShift's autoscaler
//   - capacity.cluster-autoscaler.kubernetes.io/cpu, memory, gpu-count and gpu-type: read by
//     upstream's autoscaler, and by OpenShift's with precedence
//   - capacity.cluster-autoscaler.kubernetes.io/labels and taints: the template's, kubernetes.io/arch
//     and labels from the actuator, merged with entries of others, which take precedence
//   - capacity.cluster-autoscaler.kubernetes.io/maxPods: copied from machine.openshift.io/maxPods,
//     which only a person can set
//   - machine-iac.io/capacity-size, capacity-labels, capacity-taints and capacity-max-pods: what this
//     controller has written
//
// Values set by others stay. An equal value counts as this controller's from then on. A size that
// others set in machine.openshift.io also determines the annotation of upstream's autoscaler.
//
// If the capacity is unknown, annotations stay unchanged: they may have been set by hand.
//
// # What differs from the Machine API Operator
//
//   - The cluster-autoscaler-operator adds upstream's annotations once, for MachineSets with a
//     MachineAutoscaler. This controller always sets them, and updates them with the instance type.
//   - Entries of the labels annotation keep their order, so that the MachineSet is not rewritten.
//   - An entry written for one template is updated with the next.
//
// # Permissions
//
//   - machine.openshift.io machinesets: get, list, watch, patch
//   - events.k8s.io events: create, patch
package capacity
