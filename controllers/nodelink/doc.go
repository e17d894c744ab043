// Package nodelink links Machines and Nodes: it finds the Machine of a Node, sets nodeRef in the
// Machine's status, and applies the labels, annotations and taints of the Machine's spec to the
// Node.
//
// A Node and a Machine match by equal providerID; failing that, when the Node's first InternalIP is
// one of the Machine's, unless both have a providerID, which then differ. The providerIDs of K3s and
// RKE2 (k3s:// and rke2://, with the Node's name) count as none: they name no instance. A match
// counts only when it is the best one from both sides and unique. Objects that are being deleted do
// not compete with others. A Node that is being deleted is not updated, nor is the Node of a Machine
// that is being deleted.
//
// # What differs from the Machine API Operator
//
//   - Nothing is kept in memory. Whether a Machine refers to the right Node is read from the
//     Machine, by UID, so that another Node of the same name is linked.
//   - The Machine's status is not rewritten when the Node turns Ready or NotReady. MachineSets
//     watch Nodes themselves here: that saves a write for every change, needs no memory, and
//     lastUpdated keeps meaning that the Machine has changed.
//   - Labels and annotations that were applied to a Node are removed when the Machine no longer has
//     them; one that had another value before gets it back. What was applied and what it replaced
//     is recorded on the Node, so that those of others are not changed.
//   - Before nodeRef is set, the Node is read from the API server.
//   - A Machine that lacks an InternalIP of its Node is checked soon, once per address (annotation
//     machine-iac.io/address-checked). One with names but no IP address is linked when it has one, or
//     two minutes after the request.
//   - An invalid label is left out and reported in an event; the others are applied.
//
// # Permissions
//
//   - core nodes: get, list, watch, patch
//   - machine.openshift.io machines: get, list, watch, patch
//   - machine.openshift.io machines/status: patch
//   - events.k8s.io events: create, patch (those about Nodes go to the namespace default)
package nodelink
