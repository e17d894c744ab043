// Package e2elibvirt tests the module libvirt on a development cluster, with the built manager and a libvirt daemon of
// its own: a MachineSet creates and deletes domains that run in QEMU, with KVM if available.
//
//	make e2e-libvirt                            # needs root; a minute or two on two cores
//	E2E_LIBVIRT_TYPE=qemu make e2e-libvirt      # emulated, even if KVM is available
//
// The volumes contain no operating system, so that no guest joins the cluster or requests an address: the tests create
// the Node in place of a kubelet, and the specs wait for no DHCP lease. Everything else is real.
package e2elibvirt
