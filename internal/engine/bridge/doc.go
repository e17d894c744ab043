// Package bridge keeps Pulumi's bridges to Terraform's providers running between runs, each with the
// provider that it has started. A run's CLI gets the address of a [Relay], which gives each of its
// connections its own process and caches responses that are the same for every bridge to a provider.
// The package knows nothing about Kubernetes.
package bridge
