//go:build image

package image

import (
	"bytes"
	"context"
	"net"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

const (
	namespace = "openshift-machine-api"
	tokens    = "/var/run/secrets/kubernetes.io/serviceaccount"
	// patience bounds a step on a busy machine.
	patience = 3 * time.Minute
)

// world is a cluster with the image's manager.
type world struct {
	*controlplane.ControlPlane
	webhookPort string
}

// TestMachines makes the manager create and delete a Machine with each engine, in a Pod and with rights as in the
// Deployment.
func TestMachines(t *testing.T) {
	needRoot(t)
	folder := read(t).unpack(t)
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := &world{ControlPlane: plane, webhookPort: freePort(t)}
	w.install(t)
	w.start(t, folder)
	for _, kind := range []string{"modules", "stacks"} {
		t.Run(kind, func(t *testing.T) { w.machine(t, kind) })
	}
}

// install applies the controllers' tree, with webhooks redirected to this machine, and the Machines' credentials.
func (w *world) install(t *testing.T) {
	t.Helper()
	built := exec.CommandContext(t.Context(), filepath.Join(assets(), "kubectl"), "kustomize",
		filepath.Join(root, "install", "controllers"))
	tree, err := built.Output()
	if err != nil {
		t.Fatalf("%s: %v", built, err)
	}
	for _, raw := range [][]byte{file(t, "install/kubernetes/namespace.yaml"), tree,
		file(t, "modules/kubemark/examples/credentials.yaml")} {
		for _, object := range objects(t, raw) {
			switch {
			case strings.HasSuffix(object.GetKind(), "WebhookConfiguration"):
				w.callHere(t, object)
			case object.GetKind() == "Secret":
				w.signIn(t, object)
			}
			if err := w.Client.Create(t.Context(), object); err != nil {
				t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
}

// callHere redirects a configuration's webhooks to this machine, as there is no Service network.
func (w *world) callHere(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range hooks {
		path, ok, err := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "path")
		if err != nil || !ok {
			t.Fatalf("a webhook of %s without a path: %v", object.GetName(), err)
		}
		hook.(map[string]any)["clientConfig"] = map[string]any{
			"url": "https://" + net.JoinHostPort("localhost", w.webhookPort) + path,
		}
	}
	if err := unstructured.SetNestedSlice(object.Object, hooks, "webhooks"); err != nil {
		t.Fatal(err)
	}
}

// signIn completes the kubemark module's Secret, as a cluster's token controller does.
func (w *world) signIn(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	object.Object["stringData"] = map[string]any{
		"server": w.Config.Host, "token": w.token(t, "kubemark"), "ca.crt": string(w.Config.CAData),
	}
}

// token returns a token of a service account.
func (w *world) token(t *testing.T, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := w.Client.SubResource("token").Create(t.Context(), owner, request); err != nil {
		t.Fatalf("making a token for %s: %v", account, err)
	}
	return request.Status.Token
}

// start starts the image's manager as in the Deployment, except for the addresses that it listens on.
func (w *world) start(t *testing.T, folder string) {
	t.Helper()
	pod := deployment(t).Spec.Template.Spec
	given := memory(t)
	for name, content := range map[string][]byte{
		"token": []byte(w.token(t, pod.ServiceAccountName)), "ca.crt": w.Config.CAData, "namespace": []byte(namespace),
	} {
		if err := os.WriteFile(filepath.Join(given, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(w.Config.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	arguments := append([]string{"/usr/bin/machine-controllers"}, pod.Containers[0].Args...)
	b := box{
		Root: folder,
		Command: append(arguments, "--webhook-port="+w.webhookPort, "--health-addr=127.0.0.1:0",
			"--metrics-bind-address=127.0.0.1:0"),
		Environment: environment("POD_NAMESPACE="+namespace, "KUBERNETES_SERVICE_HOST="+host,
			"KUBERNETES_SERVICE_PORT="+port),
		Folders: append(volumes(t, pod), volume{From: given, To: tokens, ReadOnly: true}),
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := b.command(context.WithoutCancel(t.Context()), t)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, command, log) })
}

// end stops the manager as the kubelet does, and checks that it exits cleanly.
func end(t *testing.T, command *exec.Cmd, log *os.File) {
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	kill := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
	defer kill.Stop()
	if err := command.Wait(); err != nil {
		t.Errorf("the manager ended with %v", err)
	}
	if t.Failed() {
		logged, err := os.ReadFile(log.Name())
		t.Logf("the manager's log: %s, %v", logged, err)
	}
	_ = log.Close()
}

// machine creates an example's Machine, waits for its Node, and deletes both.
func (w *world) machine(t *testing.T, folder string) {
	set := &machinev1beta1.MachineSet{}
	if err := yaml.Unmarshal(file(t, folder+"/kubemark/examples/machineset.yaml"), set); err != nil {
		t.Fatal(err)
	}
	machine := &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + folder, Labels: set.Spec.Template.Labels},
		Spec:       set.Spec.Template.Spec,
	}
	// Webhooks reject everything until the manager serves them.
	w.until(t, "the Machine is admitted", func(ctx context.Context) (bool, error) {
		return true, w.Client.Create(ctx, machine)
	})
	node := &corev1.Node{}
	w.until(t, "the Machine runs", func(ctx context.Context) (bool, error) {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(machine), machine); err != nil {
			return false, err
		}
		return machine.Status.Phase != nil && *machine.Status.Phase == "Running" && machine.Status.NodeRef != nil, nil
	})
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: machine.Status.NodeRef.Name}, node); err != nil ||
		machine.Spec.ProviderID == nil || node.Spec.ProviderID != *machine.Spec.ProviderID {
		t.Errorf("the Node is %s with the ID %q, %v", node.Name, node.Spec.ProviderID, err)
	}
	if err := w.Client.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the Machine is gone", func(ctx context.Context) (bool, error) {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(machine), machine)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(node), node); !apierrors.IsNotFound(err) {
		t.Errorf("the Node is still there: %v", err)
	}
}

// until polls until done returns true, and reports the last error on a timeout.
func (w *world) until(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			ok, err := done(ctx)
			last = err
			return ok && err == nil, nil
		})
	if err != nil {
		t.Fatalf("waiting until %s: %v; the last error was %v", what, err, last)
	}
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func objects(t *testing.T, raw []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.Object != nil {
			out = append(out, object)
		}
	}
	return out
}

// assets returns the folder of kubectl, etcd and the API server.
func assets() string {
	if given := os.Getenv("KUBEBUILDER_ASSETS"); given != "" {
		return given
	}
	return filepath.Join(root, "bin")
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}
