// Package machineclass completes the nodeTemplate of MachineClasses of Gardener's
// machine-controller-manager (MCM). Gardener's cluster autoscaler needs it to scale a
// MachineDeployment from zero.
//
// For classes with provider machine-iac, the capacity comes from the actuator, which derives it
// from the providerSpec if the provider's module supports that. Instance type, region and zone are
// read from the fields of the Machine API's kinds. A class without a nodeTemplate gets one only if
// all of that is known, since MCM rejects a class with an incomplete one.
//
// Values set by people stay. Values written by this controller are recorded in the annotation
// machine-iac.io/node-template, and follow the providerSpec.
//
// # Permissions
//
//   - machine.sapcloud.io machineclasses: get, list, watch, patch
//   - events.k8s.io events: create, patch
package machineclass
