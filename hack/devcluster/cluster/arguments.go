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

// serverURL is where the API is served.
func serverURL(ports map[portName]int) string { return "https://" + loopback(ports[portAPIServer]) }

// arguments returns the command line of a component. It only depends on where things lie, on the ports and on the options.
func arguments(l layout, component Component, ports map[portName]int, options Options) ([]string, error) {
	switch component {
	case Etcd:
		return etcdArguments(l, ports), nil
	case APIServer:
		return apiServerArguments(l, ports, options.Audit), nil
	case ControllerManager:
		return controllerManagerArguments(l, ports, options.NodeMonitorGrace), nil
	case Scheduler:
		return schedulerArguments(l, ports), nil
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
		// Data survives every crash of a process. Only a crash of the machine may cost it, which a development cluster can bear.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func apiServerArguments(l layout, ports map[portName]int, audited []string) []string {
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(ports[portAPIServer]),
		// An Endpoints object may not name a loopback address, so nobody keeps the one of the Service "kubernetes".
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceNetwork,
		"--etcd-servers=https://" + loopback(ports[portEtcd]),
		"--etcd-cafile=" + l.cert(certCA),
		"--etcd-certfile=" + l.cert(certEtcdClient),
		"--etcd-keyfile=" + l.key(certEtcdClient),
		"--tls-cert-file=" + l.cert(string(APIServer)),
		"--tls-private-key-file=" + l.key(string(APIServer)),
		"--client-ca-file=" + l.cert(certCA),
		// Node and NodeRestriction give a kubelet its own Node and no other, as every cluster does.
		"--authorization-mode=Node,RBAC",
		// OwnerReferencesPermissionEnforcement is on by choice: OpenShift has it on, and it finds missing rights on finalizers that a plain
		// cluster would let pass.
		// The other two let annotations of a namespace say on which Nodes its Pods run.
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement,PodNodeSelector,PodTolerationRestriction",
		"--egress-selector-config-file=" + l.egress(),
		"--service-account-issuer=" + tokenIssuer,
		"--service-account-key-file=" + l.key(keyTokens),
		"--service-account-signing-key-file=" + l.key(keyTokens),
		"--allow-privileged=true",
		// With this on it does not wait for open watches when it stops, which would take a minute.
		"--shutdown-send-retry-after=true",
		"--profiling=false",
	}
	if len(audited) > 0 {
		// Megabytes, before the log is begun anew.
		args = append(args, "--audit-policy-file="+l.auditPolicy(), "--audit-log-path="+l.auditLog(), "--audit-log-maxsize=1000")
	}
	return args
}

func controllerManagerArguments(l layout, ports map[portName]int, nodeMonitorGrace time.Duration) []string {
	kubeconfig := l.kubeconfig(ControllerManager)
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(ports[portControllerManager]),
		"--tls-cert-file=" + l.cert(string(ControllerManager)),
		"--tls-private-key-file=" + l.key(string(ControllerManager)),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + l.cert(certCA),
		"--root-ca-file=" + l.cert(certCA),
		"--service-account-private-key-file=" + l.key(keyTokens),
		"--use-service-account-credentials=true",
		// There is one of them only, and with an election it would exit when the API server is away for a while.
		"--leader-elect=false",
		"--node-monitor-grace-period=" + nodeMonitorGrace.String(),
		// Who tries an autoscaler out shall not wait for it.
		"--horizontal-pod-autoscaler-sync-period=5s",
		"--profiling=false",
	}
}

func schedulerArguments(l layout, ports map[portName]int) []string {
	kubeconfig := l.kubeconfig(Scheduler)
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(ports[portScheduler]),
		"--tls-cert-file=" + l.cert(string(Scheduler)),
		"--tls-private-key-file=" + l.key(string(Scheduler)),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + l.cert(certCA),
		// As for kube-controller-manager.
		"--leader-elect=false",
		"--profiling=false",
	}
}

func kwokArguments(l layout, ports map[portName]int, nodeLease time.Duration) ([]string, error) {
	stages, err := stageFiles(l.kwokStages())
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + l.kubeconfig(KWOK),
		"--server-address=" + loopback(ports[portKWOK]),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--node-lease-duration-seconds=" + strconv.Itoa(int(nodeLease.Seconds())),
		// Without an address of its own to give away, KWOK leaves a node the addresses that it has.
		"--node-ip=",
		"--cidr=" + podNetwork,
	}
	for _, stage := range stages {
		args = append(args, "--config="+stage)
	}
	return args, nil
}

// stageFiles lists the stage files of a folder, sorted.
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
