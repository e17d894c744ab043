package iac

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// foreign returns a Machine in phase Running whose Node another actuator has made.
func (b *bench) foreign(mods ...func(*corev1.Node)) *machinev1beta1.Machine {
	b.t.Helper()
	machine := b.machine()
	machine.Spec.ProviderID = ptr.To("kubemark://made-by-another/" + machine.Name)
	machine.Status.Phase = ptr.To(machinev1beta1.PhaseRunning)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: machine.Name, Labels: map[string]string{corev1.LabelOSStable: "linux"}},
		Spec:       corev1.NodeSpec{ProviderID: *machine.Spec.ProviderID},
		Status: corev1.NodeStatus{
			Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}},
		},
	}
	for _, mod := range mods {
		mod(node)
	}
	if err := plane.Create(b.t.Context(), node); err != nil {
		b.t.Fatal(err)
	}
	return machine
}

// ask sets what is asked for about the adoption of a Machine, as the webhooks let a user with the
// right do.
func (b *bench) ask(machine *machinev1beta1.Machine, asked lifecycle.Adoption) {
	b.t.Helper()
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, lifecycle.AdoptionAnnotation, string(asked))
	granted, err := adoption.NewGrant(b.installation, machine, "alice", time.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, adoption.GrantAnnotation, granted)
}

// planned drives a Machine until the plan of its adoption is published.
func (b *bench) planned(machine *machinev1beta1.Machine) *v1alpha1.AdoptionStatus {
	b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		_ = b.Update(b.t.Context(), machine)
		if status := readProviderStatus(machine); status.Adoption != nil {
			return status.Adoption
		}
	}
	b.t.Fatalf("nothing was planned: %+v", readProviderStatus(machine))
	return nil
}

// adoptionCondition returns the status and the reason of the condition Adopted.
func adoptionCondition(machine *machinev1beta1.Machine) string {
	status := readProviderStatus(machine)
	condition := meta.FindStatusCondition(status.Conditions, reporting.AdoptedType)
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Reason
}

func TestAnInstanceOfAnotherActuatorIsLeftAlone(t *testing.T) {
	b := newBench(t)
	machine := b.foreign()
	before := b.node(machine)
	for name, verb := range map[string]func() error{
		"Exists": func() error { _, err := b.Exists(t.Context(), machine); return err },
		"Create": func() error { return b.Create(t.Context(), machine) },
		"Update": func() error { return b.Update(t.Context(), machine) },
	} {
		doubt, uncertain := actuators.AsUncertain(verb())
		if !uncertain || doubt.Reason != "NotAdopted" || !strings.Contains(doubt.Message, lifecycle.AdoptionAnnotation) {
			t.Errorf("%s: %v, want that it is not adopted, with what to do", name, doubt)
		}
	}
	if got := adoptionCondition(machine); got != "False NotRequested" {
		t.Errorf("the condition is %q", got)
	}
	if _, uncertain := actuators.AsUncertain(b.Delete(t.Context(), machine)); !uncertain {
		t.Error("its deletion is not refused")
	}
	if after := b.node(machine); after == nil || after.ResourceVersion != before.ResourceVersion {
		t.Error("the Node was touched")
	}
}

func TestAdoption(t *testing.T) {
	b := newBench(t)
	machine := b.foreign()
	before := b.node(machine)

	b.ask(machine, lifecycle.AdoptionPlan)
	plan := b.planned(machine)
	if plan.Refused != "" || len(plan.Imports) == 0 || !strings.Contains(strings.Join(plan.Differences, " "), "providerSpec.cpu: 4 is requested, the Node has 2") {
		t.Fatalf("the plan is %+v", plan)
	}
	if after := b.node(machine); after.ResourceVersion != before.ResourceVersion || adoptionCondition(machine) != "False Planned" {
		t.Fatalf("the Node was touched, or the condition is %q", adoptionCondition(machine))
	}

	b.ask(machine, lifecycle.AdoptionAdopt)
	b.update(machine)
	if exists, err := b.Exists(t.Context(), machine); !exists || err != nil {
		t.Fatalf("Exists is %t, %v", exists, err)
	}
	after := b.node(machine)
	if after.UID != before.UID || after.Spec.ProviderID != *machine.Spec.ProviderID || adoptionCondition(machine) != "True Adopted" {
		t.Errorf("the Node is %s, its provider ID %s, the condition %q", after.UID, after.Spec.ProviderID, adoptionCondition(machine))
	}
	if !hasAddress(machine) || readProviderStatus(machine).Adoption != nil {
		t.Errorf("addresses %v, status %+v", machine.Status.Addresses, readProviderStatus(machine).Adoption)
	}

	b.clock.SetTime(b.clock.Now().Add(2 * time.Hour))
	b.update(machine)
	if f := b.factsOf(machine); f.Record.Check == nil || f.Record.Check.Result != record.DriftNone || f.Record.AdoptionPlan != nil {
		t.Errorf("the record after a drift check is %+v", f.Record)
	}

	// What is lost is found by the provider ID, since the Node does not bear the UID that a lookup
	// searches by.
	b.misplace(t, machine)
	if _, uncertain := actuators.AsUncertain(existsErr(b, machine)); !uncertain {
		t.Error("without its state the instance is not uncertain")
	}
	b.update(machine)
	if exists, err := b.Exists(t.Context(), machine); !exists || err != nil || b.node(machine).UID != before.UID {
		t.Errorf("after the loss of its state Exists is %t, %v", exists, err)
	}
}

func existsErr(b *bench, machine *machinev1beta1.Machine) error {
	_, err := b.Exists(b.t.Context(), machine)
	return err
}

// update drives a Machine until it is as requested, and nothing is in progress.
func (b *bench) update(machine *machinev1beta1.Machine) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		err := b.drive(b.Update, machine)
		if run, known := b.pool.Status(runs.Key(machine.UID)); err == nil && (!known || !run.Active()) {
			if err := b.drive(b.Update, machine); err == nil {
				return
			}
		}
	}
	b.t.Fatalf("it does not settle: %v", b.Update(b.t.Context(), machine))
}

func (b *bench) factsOf(machine *machinev1beta1.Machine) *lifecycle.Facts {
	b.t.Helper()
	f, err := b.facts(b.t.Context(), machine)
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

func TestAnAdoptedInstanceIsReleasedAndAdoptedAgainAndDeleted(t *testing.T) {
	b := newBench(t)
	machine := b.foreign()
	before := b.node(machine)
	b.ask(machine, lifecycle.AdoptionAdopt)
	b.update(machine)

	b.ask(machine, lifecycle.AdoptionRelease)
	err := b.drive(b.Update, machine)
	for deadline := time.Now().Add(patience); !b.factsOf(machine).Foreign() && time.Now().Before(deadline); time.Sleep(pause) {
		err = b.drive(b.Update, machine)
	}
	if f := b.factsOf(machine); f.Stored || f.Witness != nil {
		t.Fatalf("after its release there is %+v: %v", f, err)
	}
	_ = b.Update(t.Context(), machine)
	if got := adoptionCondition(machine); got != "False Released" || b.node(machine).UID != before.UID {
		t.Errorf("the condition is %q", got)
	}

	b.ask(machine, lifecycle.AdoptionAdopt)
	b.update(machine)
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, the Node is there: %t", err, b.node(machine) != nil)
	}
	if exists, err := b.Exists(t.Context(), machine); exists || err != nil {
		t.Errorf("Exists after Delete is %t, %v", exists, err)
	}
}

func TestAMachineThatIsDeletedIsAdoptedFirst(t *testing.T) {
	b := newBench(t)
	machine := b.foreign()
	if _, uncertain := actuators.AsUncertain(b.Delete(t.Context(), machine)); !uncertain {
		t.Fatal("its deletion is not refused")
	}
	b.ask(machine, lifecycle.AdoptionAdopt)
	live := &machinev1beta1.Machine{}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(machine), live); err != nil {
		t.Fatal(err)
	}
	machine.DeletionTimestamp = live.DeletionTimestamp
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, the Node is there: %t", err, b.node(machine) != nil)
	}
}

func TestWhatARefusedAdoptionLeavesGoesWithItsMachine(t *testing.T) {
	b := newBench(t)
	machine := b.foreign(func(n *corev1.Node) { n.Labels["machine-iac.io/cluster-id"] = "other-cluster" })
	b.ask(machine, lifecycle.AdoptionAdopt)
	b.planned(machine)
	b.vanish(machine)
	b.passes(b.orphans(), func() bool {
		left, err := b.store.List(t.Context(), b.namespace)
		return err == nil && len(left) == 0
	})
	if b.node(machine) == nil {
		t.Error("the Node is gone")
	}
}

func TestAdoptionIsRefused(t *testing.T) {
	parallel(t)
	for name, tc := range map[string]struct {
		node func(*corev1.Node)
		edit func(*bench, *machinev1beta1.Machine)
		want string
		// gone says that there is nothing that the deletion of the Machine could leave behind.
		gone bool
	}{
		"of another cluster's instance": {
			node: func(n *corev1.Node) { n.Labels["machine-iac.io/cluster-id"] = "other-cluster" }, want: "belongs to the cluster other-cluster",
		},
		"of an instance with another provider ID": {
			node: func(n *corev1.Node) { n.Spec.ProviderID = "kubemark://somebody-else" }, want: "kubemark://somebody-else",
		},
		"of an instance that is not there": {
			node: func(n *corev1.Node) { n.Name = "elsewhere-" + n.Name }, want: "no instance found with the provider ID", gone: true,
		},
		"of an instance that two Machines name": {
			edit: func(b *bench, machine *machinev1beta1.Machine) {
				second := b.machine()
				second.Spec.ProviderID = machine.Spec.ProviderID
				if err := b.sync(b.t.Context(), second); err != nil {
					b.t.Fatal(err)
				}
			},
			want: "both refer to instance",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var mods []func(*corev1.Node)
			if tc.node != nil {
				mods = append(mods, tc.node)
			}
			machine := b.foreign(mods...)
			if tc.edit != nil {
				tc.edit(b, machine)
			}
			b.ask(machine, lifecycle.AdoptionAdopt)
			plan := b.planned(machine)
			if !strings.Contains(plan.Refused, tc.want) {
				t.Errorf("it is refused for %q, want %q in it", plan.Refused, tc.want)
			}
			f := b.factsOf(machine)
			if !f.Foreign() || f.Record.Intent != nil || f.HasResources() {
				t.Errorf("what is refused leaves %+v", f)
			}
			if tc.gone {
				b.settlesDeletion(machine)
			} else if err := b.drive(b.Delete, machine); err == nil {
				t.Error("its deletion is not refused")
			}
		})
	}
}

// Modules check the identity too, so that nothing else gets this far with another's instance.
func TestTheProviderIDProvesWhoseAnInstanceIs(t *testing.T) {
	used := named(t, "kubemark")
	for name, tc := range map[string]struct {
		machine, id, output, object string
		want, wantErr               string
	}{
		"the Machine's":                 {machine: "cloud:///1", output: `"cloud:///1"`, want: "cloud:///1"},
		"another":                       {machine: "cloud:///1", output: `"cloud:///2"`, wantErr: "cloud:///2"},
		"no string":                     {machine: "cloud:///1", output: `7`, wantErr: "is not a string"},
		"found by its ID":               {id: "2", output: `"cloud:///2"`, want: "cloud:///2"},
		"unknown, and the object's":     {machine: "cloud:///i-1", object: `{"id":"i-1"}`, want: "cloud:///i-1"},
		"unknown, and another object's": {machine: "cloud:///i-1", object: `{"id":"i-2"}`, wantErr: "nothing proves that the object found"},
		"unknown, and nothing to find":  {object: `{"id":""}`, wantErr: "nothing proves that the object found"},
	} {
		t.Run(name, func(t *testing.T) {
			run := &task{run: run{
				machine: &machinev1beta1.Machine{Spec: machinev1beta1.MachineSpec{ProviderID: &tc.machine}}, wanted: &desired.State{Module: used},
				facts: &lifecycle.Facts{Adoption: lifecycle.AdoptionRequest{ID: tc.id}},
			}}
			planned := &engine.PlannedObjects{Imported: map[string]json.RawMessage{used.InstanceAddress(): json.RawMessage(tc.object)}, Outputs: map[string]json.RawMessage{}}
			if tc.output != "" {
				planned.Outputs["provider_id"] = json.RawMessage(tc.output)
			}
			got, err := run.proveIdentity(planned)
			if got != tc.want || (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %q, %v; want %q, %q", got, err, tc.want, tc.wantErr)
			}
		})
	}
}
