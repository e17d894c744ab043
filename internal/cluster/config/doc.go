// Package config reads how a cluster reaches its infrastructure from where OpenShift keeps that: proxies, certificate
// authorities, endpoints, and names that defaults are made of. On a cluster without these objects there is nothing to read, and nothing
// is missing.
//
// The words:
//
//   - [Settings]: what the objects say, as values. What they become in a run's environment is a pure function of them.
//   - [Reader]: reads the objects when it is asked and what it has is too old. Nothing is watched: there are four objects, they hardly
//     ever change, and who asks is about to start a process.
//   - bundle: the file with the certificate authorities. Engines are pointed to it, so its name changes with its content.
//
// # Permissions
//
//   - config.openshift.io infrastructures and proxies, by the name cluster: get
//   - configmaps in openshift-config-managed, by the names kube-cloud-config and trusted-ca-bundle: get
package config
