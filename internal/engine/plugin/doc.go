// Package plugin keeps plugins of Pulumi's CLI running between runs: bridges to Terraform's
// providers, with the providers that they have started, and hosts of YAML programs. A run's CLI
// gets the address of a running one. For bridges, that is a [Relay], which gives each of its
// connections its own process and caches responses that are the same for every bridge to a
// provider. For the host of the run's program, it is a [Host]. The package knows nothing about
// Kubernetes.
package plugin
