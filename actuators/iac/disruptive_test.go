package iac

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

const stopsKubelet = "which stops the kubelet"

// disruptive returns the kubemark module or stack as it sees the labels of Nodes, with the
// attributes that a change of a Node stops its kubelet by.
func (b *bench) disruptive() *module.Module {
	b.t.Helper()
	const entry = "  disruptive:\n    - {type: %s, attributes: [%s], effect: stops the kubelet}\n  lookup:"
	if b.uses == v1alpha1.EnginePulumi {
		return changed(b.t, stacks.FS, "", "  lookup:", fmt.Sprintf(entry, "kubectl:index/manifest:Manifest", "yamlBody, yamlIncluster"),
			`[metadata.annotations, metadata.labels, spec.taints]`, `[metadata.annotations]`)
	}
	return changedModule(b.t, "", "  lookup:", fmt.Sprintf(entry, "kubectl_manifest", "yaml_body, yaml_incluster"),
		`["metadata.annotations", "metadata.labels", "spec.taints"]`, `["metadata.annotations"]`)
}

// until calls a verb of a Machine until its error has the text.
func (b *bench) until(want string, verb func(context.Context, *machinev1beta1.Machine) error, machine *machinev1beta1.Machine) {
	b.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		if err = verb(b.t.Context(), machine); err != nil && strings.Contains(err.Error(), want) {
			return
		}
	}
	b.t.Fatalf("got %v, want %q", err, want)
}

// untouched fails the test if a Node is not what it was.
func (b *bench) untouched(machine *machinev1beta1.Machine, before *corev1.Node) {
	b.t.Helper()
	if after := b.node(machine); after == nil || after.ResourceVersion != before.ResourceVersion {
		b.t.Error("the Node was touched")
	}
}

func TestNoAdoptionDisruptsAnInstance(t *testing.T) {
	b := newBench(t)
	b.upgrade(b.disruptive(), "owner-1")
	machine := b.foreign()
	before := b.node(machine)
	b.ask(machine, lifecycle.AdoptionAdopt)
	if plan := b.planned(machine); !strings.Contains(plan.Refused, stopsKubelet) {
		t.Errorf("the plan is refused for %q, want %q in it", plan.Refused, stopsKubelet)
	}
	b.untouched(machine, before)
}

func TestNothingDisruptsAnInstance(t *testing.T) { eachEngine(t, nothingDisruptsAnInstance) }

// nothingDisruptsAnInstance has drift to be repaired, a change that is made in place elsewhere, and
// an instance whose state is lost.
func nothingDisruptsAnInstance(t *testing.T, b *bench) {
	b.upgrade(b.disruptive(), "owner-1")
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	before.Labels[corev1.LabelTopologyZone] = "elsewhere"
	if err := b.client.Update(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if found := b.checked(machine); found.Result != record.DriftChanged {
		t.Fatalf("the check found %+v, want it changed", found)
	}
	b.repairs(machine)
	_ = b.drive(b.Update, machine)
	if kept := b.record(machine).Repair; kept == nil || !strings.Contains(kept.Refused, stopsKubelet) {
		t.Errorf("of the repair is recorded %+v, want that it was refused", kept)
	}
	b.untouched(machine, before)

	machine.Spec.ProviderSpec.Value = b.machine(func(spec map[string]any) { spec["labels"] = map[string]any{"example.com/team": "other"} }).Spec.ProviderSpec.Value
	b.until("the change cannot be made in place: ", b.Update, machine)
	b.until(stopsKubelet, b.Update, machine)
	b.untouched(machine, before)

	b.loseState(machine)
	b.until("found an instance and left it unchanged: ", b.Update, machine)
	b.untouched(machine, before)
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, the Node is there: %t", err, b.node(machine) != nil)
	}
}

func TestALookupResizesNoServer(t *testing.T) {
	c := newCloud(t)
	c.loaded = []*module.Module{changedOf(t, modules.FS, "openstack", "", "flavor_id, flavor_name, ", "")}
	c.start(shortdir.New(t), "owner-2")
	machine := c.machine()
	c.bring(machine)
	made := c.Server(machine.Name)

	c.loseState(machine)
	machine.Spec.ProviderSpec.Value = c.machine(func(spec map[string]any) { spec["flavor"] = openstack.OtherFlavor }).Spec.ProviderSpec.Value
	c.until("would change in flavor_name, which resizes the server", c.Update, machine)
	if now := c.Server(machine.Name); now.ID != made.ID || now.Flavor != made.Flavor {
		t.Errorf("the server is %+v, want it as it was made: %+v", now, made)
	}
}

// TestWhatIsPartOfAnInstanceStaysUntilItsEnd has a server that may not be deleted at first, and
// that has a floating address.
func TestWhatIsPartOfAnInstanceStaysUntilItsEnd(t *testing.T) {
	c := newCloud(t)
	c.loaded = []*module.Module{changedOf(t, modules.FS, "openstack", "",
		"  disruptive:\n", "  partOfInstance: [openstack_networking_floatingip_associate_v2]\n  disruptive:\n")}
	c.start(shortdir.New(t), "owner-2")
	machine := c.machine(withVolumes)
	c.bring(machine)

	refused := c.Obstruct(openstack.Obstacle{Match: openstack.Removes("servers"), Refuse: true, Status: http.StatusForbidden})
	taken := c.Obstruct(openstack.Obstacle{
		Match: func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/floatingips/")
		}, Refuse: true, Status: http.StatusConflict,
	})
	for deadline := time.Now().Add(patience); refused.Met() == 0 && time.Now().Before(deadline); time.Sleep(pause) {
		_ = c.bench.Delete(t.Context(), machine)
	}
	if refused.Clear() == 0 || taken.Clear() > 0 {
		t.Error("its address was taken from a server before its end, or its end was not asked for")
	}
	err := c.drive(c.bench.Delete, machine)
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); time.Sleep(pause) { // the first may tell of the run before
		err = c.drive(c.bench.Delete, machine)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.has(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 1})
}
