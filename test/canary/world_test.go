package canary

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

const (
	patience = 5 * time.Minute
	// programsVariable is the environment variable with the folder of the manager and the plugin, which are built if it
	// is empty.
	programsVariable = "CANARY_PROGRAMS"
)

// world is an API server and a manager with verbose logs.
type world struct {
	*controlplane.ControlPlane
	*canaries
	namespace, dir, programs, modules string
	kubeconfig, stranger              string // of the administrator, and of a user who reads Machines but no Secrets
	manager                           *exec.Cmd
	ended                             chan struct{} // closed when the manager has ended
	metricsAt, metricsToken           string
}

func newWorld(t *testing.T) *world {
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
	dir := shortdir.New(t)
	w := &world{ControlPlane: plane, canaries: newCanaries(), dir: dir, modules: filepath.Join(dir, "modules")}
	if w.namespace, err = plane.Namespace(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.programs = programs(t, dir)
	writeModules(t, w.modules)
	w.kubeconfig = w.kubeconfigOf(t, "kubeconfig",
		&clientcmdapi.AuthInfo{ClientCertificateData: w.Config.CertData, ClientKeyData: w.Config.KeyData})
	machines := rbacv1.PolicyRule{
		APIGroups: []string{machinev1beta1.GroupName}, Resources: []string{"machines", "machinesets"},
		Verbs: []string{"get", "list"},
	}
	w.stranger = w.kubeconfigOf(t, "stranger", &clientcmdapi.AuthInfo{Token: w.tokenOf(t, "stranger", machines)})
	w.metricsToken = w.tokenOf(t, "metrics-reader",
		rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	return w
}

func repository(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// programs returns a folder with the manager and the plugin, built from these sources.
func programs(t *testing.T, dir string) string {
	t.Helper()
	if given := os.Getenv(programsVariable); given != "" {
		return given
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir,
		"./cmd/machine-controllers", "./cmd/kubectl-machine")
	build.Dir = repository(t)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the manager: %v\n%s", err, output)
	}
	return dir
}

// kubeconfigOf writes a kubeconfig for a user, and returns its path.
func (w *world) kubeconfigOf(t *testing.T, name string, user *clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: w.Config.Host, CertificateAuthorityData: w.Config.CAData}
	config.AuthInfos["a"] = user
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a", Namespace: w.namespace}
	config.CurrentContext = "a"
	file := filepath.Join(w.dir, name)
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// tokenOf creates a ServiceAccount with rights, and returns its token.
func (w *world) tokenOf(t *testing.T, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: name}},
	}
	if err := w.Create(t.Context(), account, role, binding); err != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{}
	if err := w.Client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

func (w *world) secret(t *testing.T, name string, data map[string]string) {
	t.Helper()
	if err := w.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name, Labels: map[string]string{references.Label: "true"},
		}, StringData: data,
	}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) logFile() string { return filepath.Join(w.dir, "manager.log") }
func (w *world) workDir() string { return filepath.Join(w.dir, "work") }

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (w *world) start(t *testing.T) {
	t.Helper()
	health := freeAddress(t)
	w.metricsAt = freeAddress(t)
	log, err := os.OpenFile(w.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	w.manager = exec.Command(filepath.Join(w.programs, "machine-controllers"),
		"--kubeconfig", w.kubeconfig, "--namespace", w.namespace, "--leader-elect=false",
		"--webhook-enabled=false", "--zap-log-level=10",
		"--work-dir", w.workDir(), "--health-addr", health, "--metrics-bind-address", w.metricsAt,
		"--module-dir", w.modules,
		"--engine-path", repository(t, "bin", "tofu"), "--provider-mirror", repository(t, "bin", "mirror"),
		"--pulumi", repository(t, "bin", "pulumi"), "--pulumi-plugins", repository(t, "bin", "pulumi-plugins"))
	w.manager.Stdout, w.manager.Stderr = log, log
	w.manager.Env = []string{"HOME=" + w.dir, "PATH=" + os.Getenv("PATH")}
	if err := w.manager.Start(); err != nil {
		t.Fatal(err)
	}
	w.ended = make(chan struct{})
	go func(manager *exec.Cmd, ended chan struct{}) {
		_ = manager.Wait() // signals end it
		close(ended)
	}(w.manager, w.ended)
	w.until(t, "the manager is ready", func() bool {
		response, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

func (w *world) stop(t *testing.T, how syscall.Signal) {
	t.Helper()
	if err := w.manager.Process.Signal(how); err != nil {
		t.Fatal(err)
	}
	<-w.ended
}

func (w *world) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(200 * time.Millisecond) {
		select {
		case <-w.ended:
			deadline = time.Time{} // no more output follows
		default:
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(w.logFile())
			t.Fatalf("after %s, not: %s\n%s", patience, what, log[max(0, len(log)-8<<10):])
		}
	}
}

// machine returns the Machine with a name, or nil.
func (w *world) machine(t *testing.T, name string) *machinev1beta1.Machine {
	t.Helper()
	machine := &machinev1beta1.Machine{}
	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, machine)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return machine
}

// failure returns the message of the event about a Machine's failed create, or "".
func (w *world) failure(t *testing.T, name string) string {
	t.Helper()
	events := &eventsv1.EventList{}
	if err := w.Client.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Regarding.Name == name && event.Reason == "FailedCreate" {
			return event.Note
		}
	}
	return ""
}

// run runs kubectl-machine and returns its output.
func (w *world) run(t *testing.T, arguments ...string) string {
	t.Helper()
	return w.runAs(t, w.kubeconfig, arguments...)
}

// runAs does the same as a kubeconfig's user.
func (w *world) runAs(t *testing.T, kubeconfig string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(w.programs, "kubectl-machine"),
		append(arguments, "--kubeconfig", kubeconfig, "-n", w.namespace)...)
	command.Env = []string{"HOME=" + w.dir, "PATH=" + repository(t, "bin") + ":" + os.Getenv("PATH")}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Logf("kubectl machine %s: %v", strings.Join(arguments, " "), err)
	}
	return string(output)
}

func (w *world) metrics(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.metricsAt+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.metricsToken)
	asking := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	response, err := asking.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Contains(text, []byte("machine_iac_")) {
		t.Fatalf("the metrics are %d, %.200s, %v", response.StatusCode, text, err)
	}
	return string(text)
}

// objects returns what a user without access to Secrets can read: all other objects, and the metadata of Secrets.
func (w *world) objects(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for what, list := range map[string]client.ObjectList{
		"a Machine": &machinev1beta1.MachineList{}, "a MachineSet": &machinev1beta1.MachineSetList{},
		"an event":    &eventsv1.EventList{},
		"a ConfigMap": &corev1.ConfigMapList{}, "a Secret": &corev1.SecretList{},
	} {
		if err := w.Client.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		if secrets, are := list.(*corev1.SecretList); are {
			for i := range secrets.Items {
				secrets.Items[i].Data = nil
			}
		}
		text, err := json.MarshalIndent(list, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		found[what] = string(text)
	}
	return found
}
