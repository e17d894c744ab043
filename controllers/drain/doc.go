// Package drain drains the Nodes of Machines that are being deleted, so that workloads move before
// the instance is deleted. It acts on Machines in phase Deleting and reports in the condition
// Drained. The machine controller deletes the instance once Drained is True. A Machine is drained
// once.
//
// Reconcile decides and does not block: a bounded pool drains in attempts of at most 20 seconds. An
// attempt cordons the Node, evicts its pods with kubectl's library, which honours
// PodDisruptionBudgets, and waits until they have terminated. Where pods remain, the Machine is
// queued again after a backoff.
//
// # What differs from the Machine API Operator
//
//   - Several Nodes are drained at a time, and one that cannot be drained does not delay the
//     others.
//   - The condition Drained reports why a drain does not end, pod by pod.
//   - preDrain hooks block a Machine even when its drain would be skipped.
//   - Two control-plane Nodes are never cordoned at the same time: check and cordon are one step.
//   - A pod is evicted by UID, so that a pod of the same name on another Node is not.
//   - An annotation bounds how long a drain may take; then the deletion continues.
//   - A pod that tolerates the cordon and was created after the first attempt is neither evicted nor
//     waited for: another would take its place after each eviction.
//   - A pod that has not terminated an hour after its grace period is no longer waited for.
//   - Another Node with the name of the Machine's Node is not drained.
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
