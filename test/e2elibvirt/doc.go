// Package e2elibvirt joins guests of libvirt to a development cluster as Nodes, by the built manager and kubeadm.
//
//	make e2e-libvirt   # as root, with packages of Debian on amd64; eight minutes with emulated guests
//
// The guests run Debian's kernel, Ignition and containerd, and the kubelet of the development cluster's module. They
// reach the API server by the name kubernetes.default.svc, and nothing else.
package e2elibvirt
