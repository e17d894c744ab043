// Package plugin keeps Pulumi's bridges to Terraform's providers running between runs, with the providers that they have started. A run's CLI is given
// the address of one that runs already: a [Relay], which gives each of its connections a process of its own, and repeats what every bridge to the same
// provider would say. It knows no Kubernetes.
package plugin
