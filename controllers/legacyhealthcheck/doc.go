// Package legacyhealthcheck converts MachineHealthChecks of healthchecking.openshift.io/v1alpha1,
// which manuals from before OpenShift 4.3 use, to those of machine.openshift.io/v1beta1.
//
// The converted one has the same name and is owned by the legacy one, so that it goes with it. The
// controller of MachineHealthChecks does the rest: there is one way of remediation. What is
// unhealthy comes from spec.unhealthyConditions, else from the ConfigMap
// node-unhealthy-conditions, else is Ready False or Unknown for five minutes. The ConfigMap is read
// every minute.
//
// Nothing is converted, and an event NotConverted says why, if the remediation strategy is another
// than to delete the Machine, if a value is invalid, or if a MachineHealthCheck of that name exists
// already. What was converted before stays then.
//
// # Permissions
//
//   - healthchecking.openshift.io machinehealthchecks: list, watch
//   - machine.openshift.io machinehealthchecks: get, create, patch
//   - core configmaps, node-unhealthy-conditions: get
//   - events.k8s.io events: create, patch
package legacyhealthcheck
