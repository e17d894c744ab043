package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// client reaches the API server of the tests, with the CRDs of both kinds of Machines.
var client dynamic.Interface

func TestMain(m *testing.M) {
	os.Exit(withServer(m))
}

func withServer(m *testing.M) int {
	root := filepath.Join("..", "..")
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		assets, err := filepath.Abs(filepath.Join(root, "bin"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := os.Setenv("KUBEBUILDER_ASSETS", assets); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	log.SetLogger(logr.Discard())
	server := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join(root, "install", "kubernetes", "crds", "machines.yaml"), filepath.Join(root, "install", "gardener", "crds")},
		ErrorIfCRDPathMissing: true,
		// On a busy machine it takes longer than the default of 20 seconds.
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	config, err := server.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server:", err, "- run 'make tools'")
		return 1
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		}
	}()
	config.QPS, config.Burst = 100, 200
	client = dynamic.NewForConfigOrDie(config)
	return m.Run()
}

// world is a namespace with a class, and what a test does in it.
type world struct {
	*testing.T
	namespace string
	class     *mcm.MachineClass
	secret    *corev1.Secret
	driver    *Driver
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, class: class(Provider, kubemark), secret: secretWith(keyUserData), driver: New(client, Options{DeletionWait: 10 * time.Second})}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	w.namespace = name[:min(len(name), 60)]
	w.create(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+w.namespace+`"}}`)
	w.class.Namespace = w.namespace
	return w
}

func (w *world) create(kind schema.GroupVersionResource, namespace, manifest string) *unstructured.Unstructured {
	w.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(manifest)); err != nil {
		w.Fatal(err)
	}
	made, err := client.Resource(kind).Namespace(namespace).Create(w.Context(), object, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// ordered creates a Machine of MCM.
func (w *world) ordered(name string, timeout time.Duration) *mcm.Machine {
	w.Helper()
	made := w.create(mcmMachines, w.namespace, fmt.Sprintf(
		`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"name":%q},"spec":{"class":{"kind":"MachineClass","name":"small"}}}`, name))
	return &mcm.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, UID: made.GetUID(), CreationTimestamp: made.GetCreationTimestamp()},
		Spec:       mcm.MachineSpec{MachineConfiguration: &mcm.MachineConfiguration{MachineCreationTimeout: &metav1.Duration{Duration: timeout}}},
	}
}

// stored waits for a Machine of ours.
func (w *world) stored(ctx context.Context, name string) *machine {
	w.Helper()
	for {
		m, err := w.driver.get(ctx, w.namespace, name)
		if err == nil && m != nil {
			return m
		}
		select {
		case <-ctx.Done():
			w.Fatalf("there is no Machine %s: %v", name, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// report writes what the manager would write.
func (w *world) report(name, status, spec string) {
	w.Helper()
	if spec != "" {
		w.merge(name, spec)
	}
	w.merge(name, status, "status")
}

func (w *world) merge(name, patch string, subresource ...string) {
	w.Helper()
	if !json.Valid([]byte(patch)) {
		w.Fatalf("%s is no JSON", patch)
	}
	_, err := client.Resource(machines).Namespace(w.namespace).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
	if err != nil {
		w.Fatal(err)
	}
}

// now is a time of transition, which the schema requires.
const now = `"lastTransitionTime":"2026-01-01T00:00:00Z"`

// made reports an instance.
func (w *world) made(name string) {
	w.Helper()
	w.report(name, `{"status":{"phase":"Provisioned","addresses":[{"type":"InternalIP","address":"fd00::1"},{"type":"Hostname","address":"host-`+name+`"}],"conditions":[
		{"type":"InstanceExists","status":"True",`+now+`},{"type":"InstanceUpToDate","status":"True",`+now+`}],"providerStatus":{"run":null,"failure":null}}}`,
		`{"metadata":{"finalizers":["machine.machine.openshift.io"]},"spec":{"providerID":"kubemark://`+name+`"}}`)
}

// failed reports a create that failed.
func (w *world) failedWith(name, class, reason, message string) {
	w.Helper()
	w.report(name, fmt.Sprintf(`{"status":{"phase":"Provisioning","conditions":[
		{"type":"InstanceExists","status":"False","reason":"InstanceNotCreated","message":%[3]q,%[4]s},{"type":"InstanceUpToDate","status":"False","reason":%[2]q,"message":%[3]q,%[4]s}],
		"providerStatus":{"run":null,"failure":{"operation":"Create","class":%[1]q}}}}`, class, reason, message, now), "")
}
