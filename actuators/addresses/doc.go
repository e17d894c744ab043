// Package addresses claims addresses for Machines from the pools that their providerSpecs name, by the IPAddressClaims of ipam.cluster.x-k8s.io, as
// machine-api-operator does: names, finalizer and owners are the same, so that either takes over what the other has made.
package addresses
