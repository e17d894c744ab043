// Package e2elibvirt tests the module libvirt on a development cluster, with the built manager and a libvirt daemon of its
// own: domains that QEMU runs, by KVM where a domain of that type starts, come and go by a MachineSet.
//
//	make e2e-libvirt                            # needs root; a minute or two on two cores
//	E2E_LIBVIRT_TYPE=qemu make e2e-libvirt      # emulated, even where there is KVM
//
// No operating system is in the volumes, so that no guest joins the cluster or takes an address: the tests make the Node that a kubelet
// would make, and ask for no lease. All else is real.
package e2elibvirt
