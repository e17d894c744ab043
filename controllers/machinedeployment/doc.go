// Package machinedeployment keeps a number of Machines, and rolls out changes of their template.
//
// A MachineDeployment has a MachineSet for each revision of its template. A reconcile runs a list of
// steps, one per file. It checks the spec (validateSpec), reads MachineSets and Machines (readFleet),
// ends what an earlier reconcile began (release), adopts or creates the MachineSet of the current
// revision (ensureCurrent), brings it what needs no rollout (propagate), judges the Machines that
// change in place (judge), lets more of them change (move), and scales the MachineSets (scale). The
// arithmetic of the latter is in [fleet], which knows no objects.
//
// # Restarts and stale caches
//
// The steps run on the cache first. When one wants to write, MachineSets and Machines are read from
// the API server, and the steps run again on these. So a stale cache may delay a step, but never
// causes a wrong one. A reconcile ends after the first step that wrote something, each write names
// the resource version that it is based on, and what is unfinished is found again in the objects.
//
// # Changes in place
//
// A Machine changes in place by moving to the current MachineSet. While it moves, both MachineSets
// are held by an annotation: they create and delete nothing. A hold ends by setting the number of the
// MachineSet to that of its Machines. The Machine controller notes which generation its condition
// InstanceUpToDate is about. If the plan refused the change, the Machine moves back, and an annotation
// of the old MachineSet has why.
//
// # MachineSets by themselves
//
// [Sets] does the same to a MachineSet without a MachineDeployment once, while an annotation asks for it.
// There, Machines change where they are, and a surge is an annotation that the MachineSet's controller
// adds to its replicas.
//
// # Permissions
//
//   - machine.openshift.io machinedeployments: get, list, watch, patch
//   - machine.openshift.io machinedeployments/status: patch
//   - machine.openshift.io machinedeployments/finalizers: update (an owner reference that blocks
//     deletion asks for it on OpenShift)
//   - machine.openshift.io machinesets: get, list, watch, create, patch, delete
//   - machine.openshift.io machinesets/status: patch
//   - machine.openshift.io machines: list, watch, patch
//   - core nodes: get, list, watch
//   - events.k8s.io events: create, patch
package machinedeployment
