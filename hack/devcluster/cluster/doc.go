// Package cluster runs a small Kubernetes cluster on this machine: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and KWOK, as processes on loopback, from binaries in one folder and with all data in another.
//
// A Cluster is a handle on a data folder, not on processes: another program may open the same folder later and take
// over. The processes outlive the program that started them, until [Cluster.Down]. Clusters in different folders run
// side by side.
//
// It needs Linux: start times in /proc identify processes, so that it never kills one that it did not start.
package cluster
