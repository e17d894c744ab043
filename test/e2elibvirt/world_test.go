//go:build e2e_libvirt

package e2elibvirt_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/libvirt"
)

const (
	root      = "../.."
	clusterID = "demo-x7k2p"
	group     = "system:bootstrappers:machines"
	// endpoint is how guests reach the API server. The network resolves this name of its certificate to address.
	endpoint = "kubernetes.default.svc:6443"
	address  = "192.168.126.1:6443"
	network  = `<network><name>workers</name>
  <forward mode='open'/><bridge name='workers'/>
  <dns><host ip='192.168.126.1'><hostname>kubernetes.default.svc</hostname></host></dns>
  <ip address='192.168.126.1' prefix='24'>
    <dhcp><range start='192.168.126.10' end='192.168.126.250'/></dhcp></ip></network>`

	// patience is for guests that are emulated on a busy machine.
	patience    = 20 * time.Minute
	stopTimeout = 4 * time.Minute
)

// world is a development cluster that guests of libvirt can join.
type world struct {
	*testing.T
	host    *libvirt.Host
	lab     *lab.Lab
	client  client.Client
	manager *lab.Manager
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{T: t}
	dir, err := os.MkdirTemp("", "machine-iac-e2e-libvirt-")
	w.must(err)
	w.host, err = libvirt.Open(t.Context(), "workers-pool")
	w.must(err)
	t.Logf("domains are of type %s: %s", w.host.DomainType, w.host.Reason)
	w.must(exec.Command("cp", filepath.Join(root, "dist/worker.qcow2"), w.host.Pool).Run())
	w.virsh("pool-refresh", w.host.Name)
	definition := filepath.Join(w.host.Dir, "workers.xml")
	w.must(os.WriteFile(definition, []byte(network), 0o600))
	w.virsh("net-create", definition)

	w.lab, err = lab.Open(t.Context(), lab.Options{Root: root, Dir: dir, Progress: os.Stdout})
	w.must(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout) // the test's context has ended
		defer cancel()
		err := errors.Join(w.host.Close(ctx), w.lab.Close(ctx))
		if t.Failed() || err != nil {
			t.Errorf("the cluster's data and all logs are kept in %s: %v", dir, err)
		} else if err := w.lab.Cluster.Purge(ctx); err != nil {
			t.Error(err)
		}
	})
	w.forward(strings.TrimPrefix(w.lab.Cluster.Server(), "https://"))
	config, err := w.lab.Cluster.AdminConfig()
	w.must(err)
	scheme, err := controlplane.Scheme()
	w.must(err)
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	return w
}

// forward connects guests to the API server, which listens on this machine's loopback only.
func (w *world) forward(server string) {
	w.Helper()
	var listener net.Listener
	var err error
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		runtime.LockOSThread() // its thread ends with the goroutine, instead of serving others in another namespace
		var namespace *os.File
		if namespace, err = os.Open(os.Getenv("LIBVIRT_NETNS")); err != nil {
			return
		}
		defer func() { _ = namespace.Close() }()
		if err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err == nil {
			listener, err = net.Listen("tcp", address)
		}
	}()
	<-listening
	w.must(err)
	w.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			guest, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(guest, server)
		}
	}()
}

func pass(guest net.Conn, server string) {
	defer func() { _ = guest.Close() }()
	connection, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	go func() { _, _ = io.Copy(connection, guest) }()
	_, _ = io.Copy(guest, connection)
}

// userData returns the page's Ignition configuration.
func (w *world) userData(page string) []byte {
	w.Helper()
	_, block, _ := strings.Cut(page, "\n```json\n")
	block, _, found := strings.Cut(block, "\n```\n")
	if !found {
		w.Fatal("the page has no Ignition configuration")
	}
	authority, err := w.lab.Cluster.CAData()
	w.must(err)
	certificates, err := cert.ParseCertsPEM(authority)
	w.must(err)
	hash := fmt.Sprintf("%x", sha256.Sum256(certificates[0].RawSubjectPublicKeyInfo))
	return []byte(strings.NewReplacer("API-SERVER:6443", endpoint, "HASH", hash).Replace(block))
}

// prepare makes the cluster look like one of kubeadm's, and does what docs/joining.md says.
func (w *world) prepare() {
	w.Helper()
	kubeadm := func(arguments ...string) string {
		out, err := exec.Command(w.lab.Path("bin", "kubeadm"), arguments...).CombinedOutput()
		if err != nil {
			w.Fatalf("kubeadm %v: %v\n%s", arguments, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	config := filepath.Join(w.lab.Dir(), "kubeadm.yaml")
	w.must(os.WriteFile(config, []byte(`apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: `+kubeadm("version", "--output=short")+`
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
serverTLSBootstrap: true
`), 0o600))
	for _, phase := range [][]string{{"upload-config", "all"}, {"bootstrap-token"}} {
		kubeadm(slices.Concat([]string{"init", "phase"}, phase,
			[]string{"--config", config, "--kubeconfig", w.lab.Cluster.AdminKubeconfig()})...)
	}
	content, err := os.ReadFile(w.lab.Path("docs", "joining.md"))
	w.must(err)
	page := string(content)
	for line := range strings.Lines(page) {
		if command, found := strings.CutPrefix(line, "kubectl "); found && strings.Contains(line, " --group="+group) {
			w.run("", strings.Fields(command)...)
		}
	}
	info := w.run("", "get", "configmap", "cluster-info", "--namespace=kube-public", "--output=yaml")
	w.run(strings.ReplaceAll(info, w.lab.Cluster.Server(), "https://"+endpoint), "replace", "--filename=-")

	w.run("", "apply", "--filename="+w.lab.Path("install/bootstrap-tokens/policy.yaml"))
	w.run("", "apply", "--kustomize="+w.lab.Path("install/bootstrap-tokens"))
	w.run("", "apply", "--kustomize="+w.lab.Path("install/certificate-approver"))
	data := filepath.Join(w.lab.Dir(), "user-data")
	w.must(os.WriteFile(data, w.userData(page), 0o600))
	w.kubectl("create", "secret", "generic", "worker-user-data", "--from-file=userData="+data)
	w.kubectl("annotate", "secret", "worker-user-data", "machine-iac.io/bootstrap-placeholders=true")
	w.kubectl("label", "secret", "worker-user-data", "machine-iac.io/usable-by-machines=user-data")
}

func (w *world) startManager() {
	w.Helper()
	arguments := []string{
		"--cluster-id=" + clusterID, "--controllers=*,certificates", "--bootstrap-token-group=" + group,
		"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--leader-elect-retry-period=4s",
	}
	for name, value := range w.host.Environment() {
		arguments = append(arguments, "--engine-env="+name+"="+value)
	}
	var err error
	w.manager, err = w.lab.StartManager(w.Context(), arguments...)
	w.must(err)
	w.Cleanup(func() {
		if err := w.manager.Stop(stopTimeout); err != nil {
			w.Error(err)
		}
	})
}

func (w *world) until(what string, check func(context.Context) error) {
	w.Helper()
	begun := time.Now()
	var last error
	err := w.manager.During(w.Context(), func(ctx context.Context) error {
		return w.lab.Until(ctx, patience, what, func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, last
		})
	})
	w.must(err)
	w.Logf("%6.1f s until %s", time.Since(begun).Seconds(), what)
}

// show prints what kubectl prints.
func (w *world) show(arguments ...string) {
	w.Helper()
	w.Logf("\n$ kubectl %s\n%s", strings.Join(arguments, " "), w.kubectl(arguments...))
}

func (w *world) kubectl(arguments ...string) string {
	w.Helper()
	return w.run("", append([]string{"--namespace=" + lab.Namespace}, arguments...)...)
}

func (w *world) run(input string, arguments ...string) string {
	w.Helper()
	out, err := w.lab.Run(w.Context(), input, arguments...)
	w.must(err)
	return out
}

func (w *world) virsh(arguments ...string) string {
	w.Helper()
	out, err := w.host.Virsh(w.Context(), arguments...)
	w.must(err)
	return out
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
