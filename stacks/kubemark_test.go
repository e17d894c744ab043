package stacks_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// cluster is an API server, and what Machines sign in with, by the stack.
type cluster struct {
	*controlplane.ControlPlane
	credentials map[string]map[string][]byte
}

// theCluster is shared by the tests: starting one is expensive.
var theCluster = sync.OnceValues(startCluster)

// started is the result of theCluster; nil before the first call.
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

const credentialsNamespace = "openshift-machine-api"

// startCluster starts an API server, and applies the credentials that stacks come with.
func startCluster() (*cluster, error) {
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		return nil, err
	}
	made := &cluster{ControlPlane: plane, credentials: map[string]map[string][]byte{}}
	started.Store(made)
	ctx := context.Background()
	if err := plane.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: credentialsNamespace}}); err != nil {
		return nil, err
	}
	for stack, folder := range map[string]string{"kubemark": "kubemark", "hollow-volumes": examples + "/hollow-volumes"} {
		token, err := made.signIn(ctx, filepath.Join(folder, "examples", "credentials.yaml"), stack)
		if err != nil {
			return nil, err
		}
		made.credentials[stack] = map[string][]byte{"server": []byte(plane.Config.Host), "token": []byte(token), "ca.crt": plane.Config.CAData}
	}
	return made, nil
}

// signIn applies a file, and returns a token of an account in it.
func (c *cluster) signIn(ctx context.Context, file, name string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for document := range strings.SplitSeq(string(content), "---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return "", err
		}
		if err := c.Client.Create(ctx, &object); err != nil {
			return "", err
		}
	}
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: credentialsNamespace, Name: name}}
	if err := c.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

// simulated is a Machine that a stack creates a simulated Node for.
type simulated struct {
	*cluster
	history
	machine *machinev1beta1.Machine
	stack   *module.Module
}

const (
	nodeAddress = "kubectl:index/manifest:Manifest.this"
	userData    = "#cloud-config hunter22hunter22"
)

func newSimulated(t *testing.T, name string) *simulated {
	t.Helper()
	h := newMachine(t, name, mustLoad(t, "kubemark"), newPulumi(t, "mirror"))
	if h.stack.InstanceAddress() != nodeAddress {
		t.Fatalf("the instance is %s, want %s", h.stack.InstanceAddress(), nodeAddress)
	}
	return h
}

func newMachine(t *testing.T, name string, stack *module.Module, e *pulumi.Engine) *simulated {
	t.Helper()
	cluster, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(cluster.Client.Delete(context.Background(), node)); err != nil {
			t.Error(err)
		}
	})
	return &simulated{
		cluster: cluster, stack: stack, history: newHistory(t, e, stack),
		machine: &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "machines", UID: types.UID("uid-of-" + name)}},
	}
}

func (h *simulated) token() []byte { return h.credentials[h.stack.Name()]["token"] }

// inputs renders what a run of a module is given, for values that are JSON.
func (h *simulated) inputs(of *module.Module, values string) given {
	h.t.Helper()
	field := map[v1alpha1.Engine]string{v1alpha1.EngineTerraform: "module", v1alpha1.EnginePulumi: "stack"}[of.Engine()]
	h.machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"machine-iac.io/v1alpha1","kind":%q,%q:%q,"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"},"values":%s}`,
		of.Traits().KindForAny, field, of.Name(), values)}
	inputs, err := render.Render(render.Input{
		Machine: h.machine, ClusterID: "demo", Module: of, UserData: []byte(userData), Credentials: h.credentials[h.stack.Name()],
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return given{variables: inputs.Variables, environment: inputs.Environment, sensitive: inputs.Sensitive}
}

// values is inputs for a run of the stack.
func (h *simulated) values(values string) given {
	h.t.Helper()
	with := h.inputs(h.stack, values)
	with.variables = withLocals(h.t, h.stack, with.variables)
	return with
}

// node returns the Machine's Node; nil when there is none.
func (h *simulated) node() *corev1.Node {
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
	reported := map[string]engine.Action{}
	for _, change := range report.Changes {
		reported[change.Address] = change.Action
	}
	return reported
}

func (h *simulated) wantPlan(id, values string, want engine.Action) *engine.Report {
	h.t.Helper()
	report := h.plan(id, h.values(values))
	if diff := cmp.Diff(map[string]engine.Action{nodeAddress: want}, changesOf(report)); diff != "" {
		h.t.Errorf("%s: the plan differs (-want +got):\n%s", id, diff)
	}
	return report
}
