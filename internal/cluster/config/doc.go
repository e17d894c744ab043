// Package config reads how to reach the infrastructure from OpenShift's configuration: proxies,
// CAs, endpoints, and names for defaults. On a cluster without these objects, everything is unset.
//
// The concepts:
//
//   - [Settings]: the values in the objects. A pure function turns them into a run's environment.
//   - [Reader]: reads the objects on demand if its data is too old. It does not watch: there are
//     four objects that hardly ever change, and the caller is about to start a process.
//   - bundle: the file with the CAs. Engines get its path, so its name changes with its content.
//
// # Permissions
//
//   - config.openshift.io infrastructures and proxies, by the name cluster: get
//   - configmaps in openshift-config-managed, by the names kube-cloud-config and trusted-ca-bundle:
//     get
package config
