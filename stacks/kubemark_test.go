package stacks_test

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// cluster is an API server, and what a Machine of kubemark signs in with.
type cluster struct {
	*controlplane.ControlPlane
	credentials map[string][]byte
}

// theCluster is shared by the tests: starting one is dear.
var theCluster = sync.OnceValues(startCluster)

// started is what theCluster has answered; nil while nobody asked.
var started atomic.Pointer[cluster]

func TestMain(m *testing.M) {
	code := m.Run()
	if plane := started.Load(); plane != nil {
		if err := plane.Stop(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
		}
	}
	os.Exit(code)
}

// startCluster starts an API server, and applies the credentials that the stack comes with.
func startCluster() (*cluster, error) {
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		return nil, err
	}
	made := &cluster{ControlPlane: plane}
	started.Store(made)
	ctx := context.Background()
	const namespace = "openshift-machine-api"
	if err := plane.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}
	content, err := fs.ReadFile(stacks.FS, "kubemark/examples/credentials.yaml")
	if err != nil {
		return nil, err
	}
	for document := range strings.SplitSeq(string(content), "---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		if err := plane.Client.Create(ctx, &object); err != nil {
			return nil, err
		}
	}
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kubemark"}}
	if err := plane.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, err
	}
	made.credentials = map[string][]byte{"server": []byte(plane.Config.Host), "token": []byte(request.Status.Token), "ca.crt": plane.Config.CAData}
	return made, nil
}

// hollow is a Machine of kubemark.
type hollow struct {
	*cluster
	history
	machine *machinev1beta1.Machine
	module  *module.Module
}

const (
	nodeAddress = "kubectl:index/manifest:Manifest.this"
	userData    = "#cloud-config hunter22hunter22"
)

func newHollow(t *testing.T, name string) *hollow {
	t.Helper()
	cluster, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	program, err := fs.Sub(stacks.FS, "kubemark")
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(modules.FS, "kubemark")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := module.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	h := &hollow{
		cluster: cluster, module: loaded,
		history: history{t: t, engine: newPulumi(t, "mirror"), project: "kubemark", program: program},
		machine: &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "machines", UID: types.UID("uid-of-" + name)}},
	}
	t.Cleanup(func() {
		err := cluster.Client.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return h
}

// inputs renders what a run of a module is given, for values that are JSON.
func (h *hollow) inputs(values string) given {
	h.t.Helper()
	h.machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"machine-iac.io/v1alpha1","kind":"TerraformMachineProviderSpec",` +
		`"module":"kubemark","credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"},"values":` + values + `}`)}
	inputs, err := render.Render(render.Input{
		Machine: h.machine, ClusterID: "demo", Module: h.module, UserData: []byte(userData), Credentials: h.credentials,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return given{variables: inputs.Variables, environment: inputs.Environment, sensitive: inputs.Sensitive}
}

// with is inputs for a run of the stack.
func (h *hollow) values(values string) given {
	h.t.Helper()
	with := h.inputs(values)
	with.variables = withLocals(h.t, h.program, with.variables)
	return with
}

// node answers the Machine's Node; nil when there is none.
func (h *hollow) node() *corev1.Node {
	h.t.Helper()
	node := &corev1.Node{}
	err := h.Client.Get(h.t.Context(), types.NamespacedName{Name: h.machine.Name}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return node
}

func changesOf(report *engine.Report) map[string]engine.Action {
	told := map[string]engine.Action{}
	for _, change := range report.Changes {
		told[change.Address] = change.Action
	}
	return told
}

func (h *hollow) wantPlan(id, values string, want engine.Action) *engine.Report {
	h.t.Helper()
	report := h.plan(id, h.values(values))
	if diff := cmp.Diff(map[string]engine.Action{nodeAddress: want}, changesOf(report)); diff != "" {
		h.t.Errorf("%s: the plan differs (-want +got):\n%s", id, diff)
	}
	return report
}
