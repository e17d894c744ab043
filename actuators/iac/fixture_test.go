package iac

import (
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

// fingerprint is that of what a Machine asks for.
const fingerprint = "fingerprint"

// hasAddress reports whether a Machine has an IP address.
func hasAddress(machine *machinev1beta1.Machine) bool {
	return slices.ContainsFunc(machine.Status.Addresses, func(one corev1.NodeAddress) bool {
		return one.Type == corev1.NodeInternalIP || one.Type == corev1.NodeExternalIP
	})
}
