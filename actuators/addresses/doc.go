// Package addresses claims IP addresses for Machines from the pools named in their providerSpecs,
// with IPAddressClaims of ipam.cluster.x-k8s.io. Names, finalizer and owners match
// machine-api-operator's, so that either operator can take over the other's claims.
package addresses
