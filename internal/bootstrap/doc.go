// Package bootstrap fills in the placeholders of user data, and keeps the bootstrap token of each
// Machine that is created.
//
// The placeholders are those of Gardener's machine-controller-manager. A token is derived from the
// key of this installation and the UID that the instance is created with, so that it needs no storage, is the same in every
// retry of a create, and is never read back from the cluster: a manager that could read Secrets in
// kube-system could read the tokens of its controllers.
//
// # Permissions
//
//   - core secrets in kube-system: create, delete
package bootstrap
