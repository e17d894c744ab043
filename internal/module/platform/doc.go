// Package platform holds what a provider module may know of the cluster that Machines belong to: the variable "cluster", which a module
// declares with the attributes that it uses. It comes from OpenShift's Infrastructure. On a cluster without one, all of it is null or empty.
package platform
