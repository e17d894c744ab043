// Package e2eopenstack tests the module openstack on a development cluster, with the built manager and an OpenStack of its own: Keystone,
// Glance, Placement, Nova, Neutron and Cinder of Debian's packages, which hack/openstack.sh starts.
//
//	make e2e-openstack                      # needs root; five minutes on two idle cores, and more where packages are installed first
//
// Nova has its fake virt driver, so that no guest joins the cluster: the tests make the Node that a kubelet would make. Neutron has no
// agents, and Cinder no storage: ports, volumes and servers are records. The APIs and all that they check are OpenStack's own.
package e2eopenstack
