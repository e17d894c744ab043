// Package bootstraptoken revokes the bootstrap token of a Machine once its Node has joined, and when
// the Machine is deleted. A token that it misses, because the manager was down when its Machine
// disappeared, expires.
//
// # Permissions
//
//   - machine.openshift.io machines: get, list, watch
//   - core secrets in kube-system: delete
package bootstraptoken
