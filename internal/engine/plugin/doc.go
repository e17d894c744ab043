// Package plugin keeps plugins of Pulumi's CLI running between runs: bridges to Terraform's providers, with the providers that they have started, and
// hosts of programs in YAML. A run's CLI is given the address of one that runs already. For bridges that is a [Relay], which gives each of its
// connections a process of its own, and repeats what every bridge to the same provider would say; for the host of the run's program it is a [Host].
// It knows no Kubernetes.
package plugin
