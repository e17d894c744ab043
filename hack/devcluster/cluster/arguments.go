package cluster

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const (
	serviceNetwork = "10.96.0.0/16"
	podNetwork     = "10.244.0.0/16"
	tokenIssuer    = "https://kubernetes.default.svc"
)

// serviceIP is the first address of serviceNetwork, which the Service "kubernetes" gets.
var serviceIP = net.IPv4(10, 96, 0, 1).To4()

func serverURL(ports map[portName]int) string { return "https://" + loopback(ports[portAPIServer]) }

// arguments returns the command line of a component.
func arguments(l layout, component Component, ports map[portName]int, options Options) ([]string, error) {
	switch component {
	case Etcd:
		return etcdArguments(l, ports), nil
	case APIServer:
		return apiServerArguments(l, ports, options.Audit), nil
	case ControllerManager:
		return controllerManagerArguments(l, ports, options.NodeMonitorGrace), nil
	case Scheduler:
		return controllerArguments(l, Scheduler, ports[portScheduler]), nil
	case KWOK:
		return kwokArguments(l, ports, options.NodeLease)
	}
	return nil, fmt.Errorf("building the arguments of %q: there is no such component", component)
}

func etcdArguments(l layout, ports map[portName]int) []string {
	client, peer := "https://"+loopback(ports[portEtcd]), "https://"+loopback(ports[portEtcdPeer])
	return []string{
		"--name=devcluster",
		"--data-dir=" + l.etcdData(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=devcluster=" + peer,
		"--cert-file=" + l.cert(certEtcd),
		"--key-file=" + l.key(certEtcd),
		"--client-cert-auth",
		"--trusted-ca-file=" + l.cert(certCA),
		"--peer-cert-file=" + l.cert(certEtcd),
		"--peer-key-file=" + l.key(certEtcd),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + l.cert(certCA),
		// Data survives a crash of any process. A development cluster can lose it when the machine crashes.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func apiServerArguments(l layout, ports map[portName]int, audited []string) []string {
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(ports[portAPIServer]),
		// An Endpoints object must not contain a loopback address, so the Service "kubernetes" has none.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceNetwork,
		"--etcd-servers=https://" + loopback(ports[portEtcd]),
		"--etcd-cafile=" + l.cert(certCA),
		"--etcd-certfile=" + l.cert(certEtcdClient),
		"--etcd-keyfile=" + l.key(certEtcdClient),
		"--tls-cert-file=" + l.cert(string(APIServer)),
		"--tls-private-key-file=" + l.key(string(APIServer)),
		"--client-ca-file=" + l.cert(certCA),
		// Node and NodeRestriction limit each kubelet to its own Node, as in every cluster.
		"--authorization-mode=Node,RBAC",
		"--enable-bootstrap-token-auth=true",
		// OwnerReferencesPermissionEnforcement is on in OpenShift too, and finds missing rights on finalizers that a
		// plain cluster tolerates. The other two plugins let a namespace's annotations select the Nodes of its Pods.
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement," +
			"PodNodeSelector,PodTolerationRestriction",
		"--egress-selector-config-file=" + l.egress(),
		"--service-account-issuer=" + tokenIssuer,
		"--service-account-key-file=" + l.key(keyTokens),
		"--service-account-signing-key-file=" + l.key(keyTokens),
		"--allow-privileged=true",
		// Otherwise it waits a minute for open watches when it stops.
		"--shutdown-send-retry-after=true",
		"--profiling=false",
	}
	if len(audited) > 0 {
		args = append(args, "--audit-policy-file="+l.auditPolicy(), "--audit-log-path="+l.auditLog(),
			"--audit-log-maxsize=1000")
	}
	return args
}

func controllerManagerArguments(l layout, ports map[portName]int, nodeMonitorGrace time.Duration) []string {
	return append(controllerArguments(l, ControllerManager, ports[portControllerManager]),
		"--root-ca-file="+l.cert(certCA),
		"--service-account-private-key-file="+l.key(keyTokens),
		"--use-service-account-credentials=true",
		// Kubelets can join: it signs their certificates, and cluster-info with their tokens.
		"--cluster-signing-cert-file="+l.cert(certCA),
		"--cluster-signing-key-file="+l.key(certCA),
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--node-monitor-grace-period="+nodeMonitorGrace.String(),
		// Autoscaler demos should not have to wait.
		"--horizontal-pod-autoscaler-sync-period=5s",
	)
}

// controllerArguments returns what kube-controller-manager and kube-scheduler have in common.
func controllerArguments(l layout, component Component, port int) []string {
	kubeconfig := l.kubeconfig(component)
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + l.cert(string(component)),
		"--tls-private-key-file=" + l.key(string(component)),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + l.cert(certCA),
		// There is only one, and with leader election it would exit when the API server is away for a while.
		"--leader-elect=false",
		"--profiling=false",
	}
}

func kwokArguments(l layout, ports map[portName]int, nodeLease time.Duration) ([]string, error) {
	return playArguments(l.kwokStages(), l.kubeconfig(KWOK), loopback(ports[portKWOK]), nodeLease)
}

// playArguments returns the arguments of a KWOK that plays annotated Nodes with the stages of a folder.
func playArguments(folder, kubeconfig, address string, nodeLease time.Duration) ([]string, error) {
	stages, err := stageFiles(folder)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--server-address=" + address,
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--node-lease-duration-seconds=" + strconv.Itoa(int(nodeLease.Seconds())),
		// If KWOK has no address of its own to assign, it keeps each Node's addresses.
		"--node-ip=",
		"--cidr=" + podNetwork,
	}
	for _, stage := range stages {
		args = append(args, "--config="+stage)
	}
	return args, nil
}

func stageFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing KWOK's stages: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".yaml" {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	slices.Sort(files)
	return files, nil
}
