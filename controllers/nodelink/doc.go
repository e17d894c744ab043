// Package nodelink joins Machines and Nodes: it finds the Machine that a Node runs on, refers to the Node in the Machine's status,
// and puts on the Node what the Machine wants its Node to carry.
//
// A Node and a Machine match by equal providerID; failing that, when the Node's first InternalIP is one of the Machine's, unless
// both have a providerID, which then differ. A match counts only when it is the best one from both sides and the only one. What is
// being deleted is no rival of what stays. A Node that is being deleted gets nothing; what changes on a Machine that is being deleted
// no longer reaches its Node.
//
// # What differs from the Machine API Operator
//
//   - Nothing is remembered in memory. Whether a Machine refers to the right Node is read from the Machine, by UID, so that a Node
//     made again under its old name is linked again.
//   - The Machine's status is not rewritten when the Node turns Ready or NotReady. That was a way of telling MachineSets, which
//     watch Nodes themselves here: one write less for every flip, nothing to remember across a restart, and lastUpdated keeps
//     meaning that the Machine has changed.
//   - Labels and annotations that were put on a Node are taken off again when the Machine no longer has them. What was put on is
//     recorded on the Node, so that those of others are left alone.
//   - A label that Kubernetes does not allow is left out and told in an event; the others are still put on.
//
// # Permissions
//
//   - core nodes: get, list, watch, patch
//   - machine.openshift.io machines: get, list, watch
//   - machine.openshift.io machines/status: patch
//   - events.k8s.io events: create, patch (those about Nodes go to the namespace default)
package nodelink
