package stacks_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

const (
	small   = `{"cpu":2,"labels":{"team":"red"}}`
	changed = `{"cpu":2,"labels":{"team":"blue"},"zone":"zone-b","instanceType":"other","taints":[{"key":"dedicated","effect":"NoSchedule"}]}`
)

// otherHands writes what KWOK, the node lifecycle controller and NodeLink write on a Node, and a person.
func (h *simulated) otherHands() {
	h.t.Helper()
	node := h.node()
	before := node.DeepCopy()
	node.Annotations["machine.openshift.io/machine"] = "machines/" + node.Name
	node.Labels["node-role.kubernetes.io/worker"] = ""
	node.Labels["team"] = "green"
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
	node.Spec.PodCIDR = "10.0.0.0/24"
	if err := h.Client.Patch(h.t.Context(), node, client.MergeFrom(before)); err != nil {
		h.t.Fatal(err)
	}
	before = node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	node.Status.NodeInfo.KubeletVersion = "v1.36.3"
	if err := h.Client.Status().Patch(h.t.Context(), node, client.MergeFrom(before)); err != nil {
		h.t.Fatal(err)
	}
}

func TestASimulatedNodeFromCreateToDestroy(t *testing.T) {
	long.Test(t)
	h := newSimulated(t, "story")
	h.create(h.values(small))
	if got := h.engine.Starts(); got != 1 {
		t.Errorf("a create started %d processes, want 1", got)
	}
	made := h.node()
	if made == nil {
		t.Fatal("there is no Node after the create")
	}
	for what, secret := range map[string]string{"user data": "hunter22", "token": string(h.token())} {
		if bytes.Contains(h.last(), []byte(secret)) {
			t.Errorf("the checkpoint shows the %s", what)
		}
	}
	if report := h.wantPlan("unchanged", small, engine.ActionNoOp); !report.NoChange() {
		t.Errorf("a plan right after the create is %+v, want no change", report)
	}
	h.otherHands()
	if report := h.wantPlan("touched", small, engine.ActionNoOp); !report.NoChange() {
		t.Errorf("a plan after others wrote on the Node is %+v, want no change", report)
	}
	h.update("update", h.values(changed))
	updated := h.node()
	if updated.UID != made.UID {
		t.Errorf("the Node is %s, want %s: it was made anew", updated.UID, made.UID)
	}
	want := map[string]string{"team": "blue", "topology.kubernetes.io/zone": "zone-b", "node.kubernetes.io/instance-type": "other"}
	got := maps.Clone(updated.Labels)
	maps.DeleteFunc(got, func(name, _ string) bool { return want[name] == "" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if _, kept := updated.Labels["node-role.kubernetes.io/worker"]; !kept || updated.Annotations["machine.openshift.io/machine"] == "" {
		t.Errorf("labels are %v, annotations %v; want what others wrote kept", updated.Labels, updated.Annotations)
	}
	if taints := updated.Spec.Taints; len(taints) != 1 || taints[0].Key != "dedicated" {
		t.Errorf("taints are %v, want the whole list written", taints)
	}
	if zone := h.outputs()["zone"]; zone != "zone-b" {
		t.Errorf("the output zone is %v, want the new one", zone)
	}
	h.otherHands() // now where the values say taints, too
	if report := h.wantPlan("again", changed, engine.ActionNoOp); !report.NoChange() {
		t.Errorf("a plan after others wrote on the Node again is %+v, want no change", report)
	}
	h.destroy(h.values(changed))
	if h.node() != nil || len(h.outputs()) != 0 {
		t.Errorf("after the destroy there are the Node %v and the outputs %v, want none", h.node(), h.outputs())
	}
}

func TestWhatANodeKeepsForEverPlansAReplacement(t *testing.T) {
	long.Test(t)
	h := newSimulated(t, "fixed")
	h.create(h.values(small))
	if destroys := h.wantPlan("bigger", `{"cpu":3,"labels":{"team":"red"}}`, engine.ActionReplace).Destroys(); len(destroys) != 1 {
		t.Errorf("destroys are %v, want the instance, so that the operator refuses", destroys)
	}
	// An update in between does not make it forget.
	h.update("update", h.values(`{"cpu":2,"labels":{"team":"blue"}}`))
	h.wantPlan("later", `{"cpu":3,"labels":{"team":"blue"}}`, engine.ActionReplace)
	h.wantPlan("back", `{"cpu":2,"labels":{"team":"blue"}}`, engine.ActionNoOp)
}

// TestWhatIsFixed tests what the replacement above depends on.
func TestWhatIsFixed(t *testing.T) {
	h := newSimulated(t, "trigger")
	fixed := func(values string) string {
		var with struct {
			Locals struct{ Fixed json.RawMessage }
		}
		if err := json.Unmarshal(h.values(values).variables, &with); err != nil {
			t.Fatal(err)
		}
		return string(with.Locals.Fixed)
	}
	for name, tc := range map[string]struct {
		values    string
		wantFixed bool
	}{
		"processors":                       {values: `{"cpu":3}`, wantFixed: true},
		"memory":                           {values: `{"memory":"8Gi"}`, wantFixed: true},
		"Pods":                             {values: `{"pods":10}`, wantFixed: true},
		"architecture":                     {values: `{"architecture":"arm64"}`, wantFixed: true},
		"labels and taints can be written": {values: `{"labels":{"a":"b"},"taints":[{"key":"a","effect":"NoSchedule"}]}`},
		"type, region and zone are labels": {values: `{"instanceType":"other","region":"r","zone":"z"}`},
		"defaults that are spelt out":      {values: `{"cpu":4,"memory":"16Gi","pods":110,"architecture":"amd64"}`},
		"a number that is spelt as a text": {values: `{"cpu":"4"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if differs := fixed(tc.values) != fixed(`{}`); differs != tc.wantFixed {
				t.Errorf("fixed is %s, want it to differ from the defaults: %t", fixed(tc.values), tc.wantFixed)
			}
		})
	}
}

func TestAMissingNodeIsReported(t *testing.T) {
	long.Test(t)
	h := newSimulated(t, "gone")
	h.create(h.values(small))
	if err := h.Client.Delete(t.Context(), h.node()); err != nil {
		t.Fatal(err)
	}
	report := h.wantPlan("gone", small, engine.ActionCreate)
	if gone := report.Missing(); len(gone) != 1 || gone[0].Address != nodeAddress {
		t.Errorf("gone are %v, want the Node", gone)
	}
	h.destroy(h.values(small)) // nothing to destroy is no error
}

func TestACreateThatFailsPublishesNothing(t *testing.T) {
	long.Test(t)
	h := newSimulated(t, "refused")
	// The label is text that looks like a reference; as a label's value the API server refuses it.
	const values = `{"labels":{"team":"${machine.uid}"}}`
	_, err := h.with("create", h.values(values), func(f *pulumi.Workspace) (*engine.Report, error) { return f.Apply(t.Context()) })
	if err == nil || !strings.Contains(err.Error(), `Invalid value: "${machine.uid}"`) {
		t.Errorf("Apply() = %v, want the API server's refusal, of the text as it is", err)
	}
	if outputs := h.outputs(); len(outputs) != 0 {
		t.Errorf("outputs are %v, want none: there is no Node", outputs)
	}
}

func TestANodeThatTheStateLacksIsFound(t *testing.T) {
	long.Test(t)
	h := newSimulated(t, "lost")
	with := h.values(small)
	empty := h.empty(with)
	if _, err := h.engine.RunSearch(t.Context(), engine.SearchLookup, h.run("none", with)); err == nil || !h.stack.Absent(err.Error()) {
		t.Fatalf("Look() = %v, want the words that module.yaml knows for what is not there", err)
	}
	h.create(with)
	before := h.node().UID
	lookup, err := h.engine.RunSearch(t.Context(), engine.SearchLookup, h.run("look", with))
	if err != nil {
		t.Fatal(err)
	}
	found, err := pulumi.LookupResources(lookup)
	if err != nil || !bytes.Contains(found[nodeAddress], []byte(h.machine.UID)) {
		t.Fatalf("found is %s, %v, want the Node with the Machine's UID", found, err)
	}
	adopted, err := pulumi.Adopt(empty, lookup)
	if err != nil {
		t.Fatal(err)
	}
	h.set(adopted)
	h.update("continue", h.values(small))
	if after := h.node(); after == nil || after.UID != before {
		t.Errorf("the Node is %v, want that with UID %s", after, before)
	}
	if id := h.outputs()["instance_id"]; id != string(before) {
		t.Errorf("the output instance_id is %v, want %s", id, before)
	}
	h.wantPlan("unchanged", small, engine.ActionNoOp)
	h.wantPlan("bigger", `{"cpu":8,"labels":{"team":"red"}}`, engine.ActionReplace)
	h.destroy(h.values(small))
	if h.node() != nil {
		t.Error("the Node is there after the destroy")
	}
}

func TestANodeOfAnotherMachineIsReported(t *testing.T) {
	long.Test(t)
	h := newSimulated(t, "taken")
	other := &corev1.Node{}
	other.Name, other.Labels = "taken", map[string]string{"machine-iac.io/machine-uid": "somebody-else"}
	other.Spec.ProviderID = "kubemark://somebody-else"
	if err := h.Client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	with := h.values(small)
	lookup, err := h.engine.RunSearch(t.Context(), engine.SearchLookup, h.run("look", with))
	if err != nil {
		t.Fatal(err)
	}
	found, err := pulumi.LookupResources(lookup)
	if err != nil || len(found) != 1 || bytes.Contains(found[nodeAddress], []byte(h.machine.UID)) {
		t.Errorf("found is %s, %v, want a Node without the Machine's UID", found, err)
	}
	_, err = h.with("create", with, func(f *pulumi.Workspace) (*engine.Report, error) { return f.Apply(t.Context()) })
	if err == nil {
		t.Error("a Node of another Machine was taken over")
	}
	if diff := cmp.Diff(other, h.node()); diff != "" {
		t.Errorf("the Node has changed (-before +after):\n%s", diff)
	}
}
