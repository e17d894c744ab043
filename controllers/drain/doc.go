// Package drain empties the Nodes of Machines that are being deleted, so that workloads leave before the instance goes. It acts on a
// Machine whose phase is Deleting, tells in the condition Drained how far it is, and leaves the rest to the machine controller, which
// destroys the instance once Drained is True. A Machine is drained once.
//
// Reconcile decides and holds no worker: the work is done in passes of at most 20 seconds by a bounded pool. A pass cordons the Node,
// evicts its pods with kubectl's own library, PodDisruptionBudgets honoured, and waits for them to go. Where pods are left, the
// Machine goes to the end of the line and comes back after a pause.
//
// # What differs from the Machine API Operator
//
//   - Many Nodes are drained at a time, and one that cannot be drained holds up no other.
//   - Why a drain does not end is told in the condition Drained, pod by pod.
//   - preDrain hooks hold a Machine even when its drain would be skipped.
//   - Of two control-plane Nodes never both are cordoned: the look at the others and the cordon are one.
//   - A pod is evicted as the very pod that was seen on the Node, not as another of its name that runs elsewhere by now.
//   - An annotation bounds how long a Machine is drained; then its deletion goes on.
//   - A Node made again under the name of the Machine's Node is not drained.
//
// # Permissions
//
//   - machine.openshift.io machines: get, list, watch, patch
//   - machine.openshift.io machines/status: patch
//   - core nodes: get, list, patch
//   - core pods: get, list
//   - core pods/eviction: create
//   - apps daemonsets: get
//   - events.k8s.io events: create, patch
package drain
