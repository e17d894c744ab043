package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// roleVariable makes a process of this test a manager: first one that takes Landlock from itself,
// and then the manager.
const roleVariable = "TEST_MANAGER"

// beManager runs this process as what the variable says, and returns where it says nothing.
func beManager() {
	var err error
	switch os.Getenv(roleVariable) {
	case "":
		return
	case "without Landlock":
		err = withoutLandlock()
	default:
		err = start(ctrl.SetupSignalHandler(), os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// withoutLandlock has this process become a manager whose kernel has no Landlock, by a seccomp
// profile that does not know its calls.
func withoutLandlock() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return err
	}
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), roleVariable + "=manager"}
	return unix.Exec("/proc/self/exe", os.Args, environment)
}

// aManager is one that runs on a real API server, and what it manages.
type aManager struct {
	plane           *controlplane.ControlPlane
	namespace, dir  string
	health, logFile string
	ended           chan struct{}
}

// startWithoutLandlock starts a manager whose kernel has no Landlock.
func startWithoutLandlock(t *testing.T, flags ...string) *aManager {
	t.Helper()
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	m := &aManager{plane: plane, dir: shortdir.New(t), health: freeAddress(t), ended: make(chan struct{})}
	m.logFile = filepath.Join(m.dir, "log")
	if m.namespace, err = plane.Namespace(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0], append(flags, "--kubeconfig", m.kubeconfig(t), "--namespace", m.namespace, "--leader-elect=false", "--webhook-enabled=false",
		"--work-dir", filepath.Join(m.dir, "work"), "--health-addr", m.health, "--metrics-bind-address=0",
		"--engine-path", filepath.Join(tools, "tofu"), "--provider-mirror", filepath.Join(tools, "mirror"))...)
	command.Env = append(os.Environ(), roleVariable+"=without Landlock")
	log, err := os.Create(m.logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = command.Wait() // it is ended by a signal
		close(m.ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-m.ended
	})
	return m
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (m *aManager) kubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: m.plane.Config.Host, CertificateAuthorityData: m.plane.Config.CAData}
	config.AuthInfos["a"] = &clientcmdapi.AuthInfo{ClientCertificateData: m.plane.Config.CertData, ClientKeyData: m.plane.Config.KeyData}
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
	config.CurrentContext = "a"
	file := filepath.Join(m.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// kubemark makes a Machine of a simulated Node, with credentials for it.
func (m *aManager) kubemark(t *testing.T) *machinev1beta1.Machine {
	t.Helper()
	m.until(t, "the manager has an identity, older than the Machine", func() bool {
		own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: installation.SecretName}}
		return m.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(own), own) == nil && time.Since(own.CreationTimestamp.Time) > time.Second
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "kubemark"}}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "kubemark"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "create", "patch", "delete"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubemark"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: m.namespace, Name: account.Name}},
	}
	if err := m.plane.Create(t.Context(), account, role, binding); err != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{}
	if err := m.plane.Client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "kubemark-credentials", Labels: map[string]string{references.Label: "credentials"}},
		Data: map[string][]byte{
			"server": []byte(m.plane.Config.Host), "token": []byte(token.Status.Token), "ca.crt": m.plane.Config.CAData,
		},
	}
	machine := builder.In(m.namespace, builder.Machine())
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{
		"apiVersion": "kubemarkproviderconfig.openshift.io/v1alpha1", "kind": "KubemarkMachineProviderConfig",
		"credentialsSecret": map[string]any{"name": secret.Name},
	})
	if err := m.plane.Create(t.Context(), secret, machine); err != nil {
		t.Fatal(err)
	}
	return machine
}

// until waits for something, and fails the test with the log where it does not come.
func (m *aManager) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s\n%s", what, m.log(t))
		}
	}
}

func (m *aManager) log(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(m.logFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// ready returns what /readyz says; zero where nothing responds.
func (m *aManager) ready(t *testing.T) (status int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.health+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// said returns what the conditions of a Machine say.
func (m *aManager) said(t *testing.T, machine *machinev1beta1.Machine) string {
	t.Helper()
	if err := m.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, condition := range machine.Status.Conditions {
		fmt.Fprintf(&text, "%s %s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return text.String()
}

func (m *aManager) nodes(t *testing.T) int {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := m.plane.Client.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	return len(nodes.Items)
}

func TestWithoutLandlockNoRunStarts(t *testing.T) {
	long.Test(t)
	m := startWithoutLandlock(t) // the default
	machine := m.kubemark(t)
	var said string
	defer func() {
		if t.Failed() {
			t.Log(said)
		}
	}()
	m.until(t, "the condition says why", func() bool {
		said = m.said(t, machine)
		return strings.Contains(said, "InstanceUpToDate False CreateError: preparing module kubemark: initializing the module: engines cannot be confined: the kernel has no Landlock, which --sandbox=required demands: the kernel is older")
	})
	if status, text := m.ready(t); status != http.StatusInternalServerError || !strings.Contains(text, "[-]engines") {
		t.Errorf("/readyz is %d: %s", status, text)
	}
	if log := m.log(t); !strings.Contains(log, "Not starting any run") || m.nodes(t) > 0 {
		t.Errorf("%d instances were made; the log is\n%s", m.nodes(t), log)
	}
}

func TestAPreferredSandboxRunsWithoutLandlock(t *testing.T) {
	long.Test(t)
	m := startWithoutLandlock(t, "--sandbox=preferred")
	machine := m.kubemark(t)
	m.until(t, "there is an instance", func() bool { return strings.Contains(m.said(t, machine), "InstanceUpToDate True") && m.nodes(t) == 1 })
	if status, text := m.ready(t); status != http.StatusOK {
		t.Errorf("/readyz is %d: %s", status, text)
	}
	if log := m.log(t); !strings.Contains(log, "Engines are not confined, because the kernel lacks Landlock") {
		t.Errorf("the log is\n%s", log)
	}
}
