package stacks_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// stateBackend keeps one state, as an engine that speaks Terraform's http backend wants it.
type stateBackend struct {
	mu    sync.Mutex
	state []byte
}

func (b *stateBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		b.state, _ = io.ReadAll(r.Body) // half a state is no JSON, and fails what reads it
	case b.state == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write(b.state)
	}
}

// newTofu returns OpenTofu with the module kubemark.
func newTofu(t *testing.T, of *module.Module) *tofu.Engine {
	t.Helper()
	binary, err := tofu.Find(t.Context(), tofu.FindOptions{Path: tool(t, "tofu")})
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	made, err := tofu.New(tofu.Options{
		Binary: binary, WorkDir: shortdir.New(t), ProviderMirror: tool(t, "mirror"), WaitDelay: 20 * time.Second, Logger: testr.New(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Prepare(t.Context(), tofu.Module{Digest: of.Digest(), Files: of.Files()}); err != nil {
		t.Fatal(err)
	}
	return made
}

// inHCL makes a Node by the module in HCL, removes it again, and returns the outputs and what the Node was.
func (h *simulated) inHCL(e *tofu.Engine, of *module.Module, values string) (outputs map[string]any, node *corev1.Node) {
	h.t.Helper()
	server := httptest.NewServer(&stateBackend{})
	defer server.Close()
	with := h.inputs(of, values)
	folder, err := e.Open(h.t.Context(), tofu.RunSpec{
		ID: "r", Module: of.Digest(), Variables: with.variables, Environment: with.environment, Backend: tofu.Backend{Address: server.URL},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	report, err := folder.Apply(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	outputs = map[string]any{}
	for name, output := range report.Outputs {
		var value any
		if err := json.Unmarshal(output.Value, &value); err != nil {
			h.t.Fatal(err)
		}
		outputs[name] = value
	}
	node = h.node()
	if _, err := folder.Destroy(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		h.t.Fatal(err)
	}
	return outputs, node
}

// comparableNode returns a Node without what the API server makes up each time.
func comparableNode(node *corev1.Node) *corev1.Node {
	bare := node.DeepCopy()
	bare.UID, bare.ResourceVersion, bare.ManagedFields = "", "", nil
	bare.CreationTimestamp.Reset()
	return bare
}

// TestBothEnginesMakeTheSame runs the module and the stack on the same inputs.
func TestBothEnginesMakeTheSame(t *testing.T) {
	long.Test(t)
	h := newSimulated(t, "both")
	inHCL := mustLoad(t, "../modules/kubemark")
	openTofu := newTofu(t, inHCL)
	for name, values := range map[string]string{
		"nothing but the defaults": `{}`,
		"every field": `{"cpu":8,"memory":"32G","pods":250,"architecture":"arm64","instanceType":"hollow-large","region":"region-a","zone":"zone-a",` +
			`"labels":{"example.com/team":"platform","empty":""},"taints":[{"key":"dedicated","value":"gpu","effect":"NoSchedule"},{"key":"bare","effect":"NoExecute"}]}`,
		"labels of the module's own, and numbers that are no integers": `{"cpu":2.5,"labels":{"kubernetes.io/hostname":"someone-else","machine-iac.io/machine-uid":"no"}}`,
		"texts where numbers are wanted, nulls for defaults":           `{"cpu":"4","pods":"1","zone":null,"taints":null,"region":"r"}`,
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			wantOutputs, wantNode := h.inHCL(openTofu, inHCL, values)
			h.create(h.values(values))
			outputs, node := h.outputs(), h.node()
			if outputs["instance_id"] != string(node.UID) || wantOutputs["instance_id"] != string(wantNode.UID) {
				t.Errorf("instance_id is %v and %v, want the UIDs of the Nodes", outputs["instance_id"], wantOutputs["instance_id"])
			}
			delete(outputs, "instance_id")
			delete(wantOutputs, "instance_id")
			if diff := cmp.Diff(wantOutputs, outputs); diff != "" {
				t.Errorf("outputs of the module and the stack differ (-module +stack):\n%s", diff)
			}
			if diff := cmp.Diff(comparableNode(wantNode), comparableNode(node)); diff != "" {
				t.Errorf("the Nodes differ (-module +stack):\n%s", diff)
			}
			h.destroy(h.values(values))
		})
	}
}
