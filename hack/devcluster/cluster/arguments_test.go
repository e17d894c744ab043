package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var testPorts = map[portName]int{
	portEtcd: 21001, portEtcdPeer: 21002, portAPIServer: 21003, portControllerManager: 21004,
	portKWOK: 21005, portScheduler: 21006,
}

func testArguments(t *testing.T, component Component) []string {
	t.Helper()
	l := layout{dir: t.TempDir(), bin: "/bin-folder"}
	if err := os.MkdirAll(l.kwokStages(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.yaml", "a.yaml", "note.txt"} {
		if err := os.WriteFile(filepath.Join(l.kwokStages(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args, err := arguments(l, component, testPorts, Options{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, l.dir, "DIR")
	}
	return args
}

func TestArguments(t *testing.T) {
	cases := map[string]struct {
		component Component
		want      []string
	}{
		"etcd asks everyone for a certificate": {Etcd, []string{
			"--data-dir=DIR/etcd", "--listen-client-urls=https://127.0.0.1:21001",
			"--listen-peer-urls=https://127.0.0.1:21002",
			"--client-cert-auth", "--peer-client-cert-auth",
		}},
		"the API server checks who may do what": {APIServer, []string{
			"--authorization-mode=Node,RBAC", "--enable-bootstrap-token-auth=true", "--bind-address=127.0.0.1", "--secure-port=21003",
			"--etcd-servers=https://127.0.0.1:21001",
			"--client-ca-file=DIR/pki/ca.crt", "--service-account-signing-key-file=DIR/pki/service-account.key",
			"--egress-selector-config-file=DIR/config/egress.yaml",
		}},
		"controllers act under their own names": {ControllerManager, []string{
			"--use-service-account-credentials=true", "--bind-address=127.0.0.1", "--secure-port=21004",
			"--root-ca-file=DIR/pki/ca.crt", "--cluster-signing-key-file=DIR/pki/ca.key",
			"--service-account-private-key-file=DIR/pki/service-account.key", "--node-monitor-grace-period=2m0s",
		}},
		"the scheduler acts under its own name": {Scheduler, []string{
			"--kubeconfig=DIR/config/kube-scheduler.kubeconfig", "--bind-address=127.0.0.1", "--secure-port=21006",
			"--client-ca-file=DIR/pki/ca.crt", "--leader-elect=false",
		}},
		"KWOK plays only the nodes that ask for it": {KWOK, []string{
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--node-lease-duration-seconds=40", "--server-address=127.0.0.1:21005",
			"--config=DIR/config/kwok-stages/a.yaml", "--config=DIR/config/kwok-stages/b.yaml",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := testArguments(t, tc.component)
			for _, want := range tc.want {
				if !slices.Contains(args, want) {
					t.Errorf("%s is missing in %q", want, args)
				}
			}
		})
	}
	if args := strings.Join(testArguments(t, APIServer), " "); strings.Contains(args, "--audit") {
		t.Errorf("requests are written down that nobody asks for: %s", args)
	}
	audited, err := arguments(layout{dir: "DIR"}, APIServer, testPorts, Options{Audit: []string{"somebody"}})
	if err != nil || !slices.Contains(audited, "--audit-policy-file=DIR/config/audit-policy.yaml") ||
		!slices.Contains(audited, "--audit-log-path=DIR/logs/audit.log") {
		t.Errorf("no requests are written down: %v, %v", audited, err)
	}
	if _, err := arguments(layout{}, "kubelet", testPorts, Options{}); err == nil {
		t.Error("arguments for a component that there is not")
	}
}

func TestNothingListensOffLoopback(t *testing.T) {
	address := regexp.MustCompile(`^--(bind-address|listen-.*|server-address|.*-urls)=(https://)?127\.0\.0\.1(:\d+)?$`)
	listens := regexp.MustCompile(`^--(bind-address|listen-|server-address|[a-z-]*-urls)`)
	for _, component := range Components() {
		found := false
		for _, arg := range testArguments(t, component) {
			if listens.MatchString(arg) {
				found = true
				if !address.MatchString(arg) {
					t.Errorf("%s listens with %s", component, arg)
				}
			}
		}
		if !found {
			t.Errorf("%s has no argument for its address", component)
		}
	}
}
