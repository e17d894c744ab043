// Package cluster runs a small Kubernetes cluster on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler
// and KWOK, as plain processes on loopback, from binaries in one folder, with everything they need and leave behind in another.
//
// A Cluster is a handle on a data folder, not on processes: another program may open the same folder later and continue with what runs
// there. The processes outlive the program that started them, until [Cluster.Down]. Clusters in different folders run side by side.
//
// It needs Linux: a process is known by its start time in /proc, so that only what was started here is ever ended.
package cluster
