// Package secretprotection keeps the Secrets that Machines need while their namespace is being
// deleted.
//
// Deleting a namespace deletes all its Secrets at once, but its Machines still need them to destroy
// their instances. So a Secret named in a Machine's providerSpec gets a finalizer until the last
// such Machine is gone. A Secret that is deleted individually goes at once, needed or not: that is
// how other software renews credentials. Only finalizers are written, and only if they change; the
// Secrets' owners may write everything else.
//
// A process that manages another namespace loses its permissions with the RoleBinding in that
// namespace. The RoleBinding gets the finalizer, too, if the process may set it, until the last
// Machine and the last state are gone. The role should be a ClusterRole, because a Role is deleted
// with the namespace.
//
// Secrets are found in all providerSpec fields whose name ends in "Secret", as a string or as an
// object with a name.
//
// # Permissions
//
//   - machine.openshift.io machines: list, watch
//   - secrets: get, list, watch, create (a dry run), update
//   - rbac.authorization.k8s.io rolebindings: get, update, for a manager of another namespace
package secretprotection
