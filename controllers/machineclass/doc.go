// Package machineclass completes the nodeTemplate of MachineClasses of Gardener's machine-controller-manager (MCM), by which Gardener's cluster
// autoscaler scales a MachineDeployment from zero.
//
// Of the classes with provider machine-iac, the capacity comes from the actuator, which knows it from the providerSpec alone, for every provider whose
// module has it. Instance type, region and zone are read from the fields that the kinds of the Machine API have for them. A class without a nodeTemplate
// gets one where all of that is known, since MCM makes no Machine of a class whose nodeTemplate is not whole.
//
// What a person has written stays. What this controller has written is recorded in the annotation machine-iac.io/node-template, and follows the
// providerSpec.
//
// # Permissions
//
//   - machine.sapcloud.io machineclasses: get, list, watch, patch
//   - events.k8s.io events: create, patch
package machineclass
