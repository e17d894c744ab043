// Package e2eopenstack tests the module openstack on a development cluster, with the built manager and its own
// OpenStack: Keystone, Glance, Placement, Nova, Neutron and Cinder from Debian packages, started by hack/openstack.sh.
//
//	make e2e-openstack                      # needs root; five minutes on two idle cores, plus package installation
//
// Nova uses its fake virt driver, so no guest joins the cluster: the tests create the Node in place of a kubelet.
// Neutron has no agents and Cinder no storage: ports, volumes and servers are only records. The APIs and their checks
// are OpenStack's own.
package e2eopenstack
