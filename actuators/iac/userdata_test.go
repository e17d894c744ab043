package iac

import (
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/modules"
)

// interrupted leaves a Machine as a manager does that is killed during a create, with its instance
// where that was made, and takes away the user data.
func (b *bench) interrupted(machine *machinev1beta1.Machine, userData string) {
	b.t.Helper()
	_, used, err := b.desired.Complete(machine)
	if err != nil {
		b.t.Fatal(err)
	}
	machine.Spec.ProviderID, machine.Status.Addresses = nil, nil
	b.crash(machine, used)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: userData}}
	if err := b.client.Delete(b.t.Context(), secret); err != nil {
		b.t.Fatal(err)
	}
}

// waitsForUserData drives a create that can do nothing without its user data.
func (b *bench) waitsForUserData(machine *machinev1beta1.Machine, name string) {
	b.t.Helper()
	err := b.drive(b.Create, machine)
	if !isReason(err, machinev1beta1.CreateMachineError) || actuators.IsInvalidConfiguration(err) || !strings.Contains(err.Error(), "Secret "+b.namespace+"/"+name) {
		b.t.Fatalf("Create: %v, want a CreateError that names the Secret", err)
	}
}

// What is stored of an interrupted create has no user data, so that it is not repeated from that
// alone.
func TestAnInterruptedCreateWaitsForItsUserData(t *testing.T) {
	b := newBench(t)
	machine := b.machine(b.userData("mine", nil))
	b.interrupted(machine, "mine")
	for range 2 { // also once the lookup has settled that there is nothing
		b.waitsForUserData(machine, "mine")
		if b.node(machine) != nil {
			t.Fatal("the instance was made without its user data")
		}
	}
	b.userData("mine", nil)
	b.comesRight(b.Create, machine)
	b.bring(machine)
	if b.node(machine) == nil {
		t.Error("there is no instance once there is user data")
	}
}

func TestAnInstanceIsFoundWithoutItsUserData(t *testing.T) {
	b := newBench(t)
	machine := b.machine(b.userData("mine", nil))
	b.bring(machine)
	before := b.node(machine)
	b.interrupted(machine, "mine")
	b.waitsForUserData(machine, "mine")
	if there, err := b.Exists(t.Context(), machine); !there || err != nil {
		t.Errorf("Exists: %t, %v; want the instance found", there, err)
	}
	if after := b.node(machine); after == nil || after.UID != before.UID {
		t.Errorf("the Node is %v, want the one with UID %s", after, before.UID)
	}
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance gone", err)
	}
}

func TestAnInterruptedCreateIsDeletedWithoutItsUserData(t *testing.T) {
	b := newBench(t)
	for name, made := range map[string]bool{"with an instance": true, "before there was one": false} {
		t.Run(name, func(t *testing.T) {
			secret := "mine-" + map[bool]string{true: "made", false: "unmade"}[made]
			machine := b.machine(b.userData(secret, nil))
			if made {
				b.bring(machine)
			}
			b.interrupted(machine, secret)
			if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
				t.Errorf("Delete: %v, want the instance gone", err)
			}
		})
	}
}

// Of an instance in several parts, those that are missing may be made of user data.
func TestPartsThatAreMissingWaitForUserData(t *testing.T) {
	b := newBench(t)
	b.upgrade(changed(t, modules.FS, `
resource "kubectl_manifest" "part" {
  yaml_body       = yamlencode({ apiVersion = "v1", kind = "Node", metadata = { name = "${var.machine.name}-part" } })
  validate_schema = false
}
`), "owner-2")
	machine := b.machine(b.userData("mine", nil))
	b.bring(machine)
	before := b.node(machine)
	part := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: machine.Name + "-part"}} // what node finds it by
	if err := plane.Client.Delete(t.Context(), b.node(part)); err != nil {
		t.Fatal(err)
	}
	b.interrupted(machine, "mine")
	for range 2 {
		b.waitsForUserData(machine, "mine")
		if b.node(part) != nil || b.record(machine).Intent == nil {
			t.Fatal("the part was made without user data, or what was begun is forgotten")
		}
	}
	b.userData("mine", nil)
	b.comesRight(b.Create, machine)
	b.bring(machine)
	if after := b.node(machine); after == nil || after.UID != before.UID || b.node(part) == nil {
		t.Errorf("the Node is %v, want the one with UID %s, and its part", after, before.UID)
	}
}

// User data is what an instance is made with. What becomes of its Secret concerns the instances
// that are made afterwards.
func TestTheUserDataOfAnInstanceIsThatOfItsCreate(t *testing.T) {
	eachEngine(t, theUserDataOfAnInstanceIsThatOfItsCreate)
}

func theUserDataOfAnInstanceIsThatOfItsCreate(t *testing.T, b *bench) {
	if b.uses != v1alpha1.EnginePulumi {
		b.upgrade(changedModule(t, "resource \"terraform_data\" \"booted\" {\n  input = nonsensitive(var.user_data)\n  lifecycle {\n    ignore_changes = [input]\n  }\n}\n"), "owner-2")
	}
	uses := b.userData("mine", nil)
	machine := b.machine(uses)
	b.bring(machine)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "mine"}}
	starts := b.starts()
	unconcerned := func(when string) {
		t.Helper()
		if err := b.drive(b.Update, machine); err != nil || b.starts() != starts {
			t.Errorf("Update with %s: %v after %d engine processes, want no run", when, err, b.starts()-starts)
		}
		if found := b.checked(machine); found.Result != record.DriftNone {
			t.Errorf("a check with %s found %+v", when, found)
		}
		starts = b.starts()
	}
	if err := plane.Client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"userData":"other"}}`))); err != nil {
		t.Fatal(err)
	}
	unconcerned("other user data")
	later := b.machine(uses)
	b.bring(later)
	if b.uses != v1alpha1.EnginePulumi {
		for one, want := range map[*machinev1beta1.Machine]string{machine: hidden, later: "other"} {
			if raw := string(b.factsOf(one).Raw); !strings.Contains(raw, `"`+want+`"`) {
				t.Errorf("the instance was not made with the user data %s", want)
			}
		}
	}
	if err := plane.Client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	starts = b.starts()
	unconcerned("no Secret")
	machine.Spec.ProviderSpec.Value = b.machine(uses, func(spec map[string]any) { spec["zone"] = "zone-b" }).Spec.ProviderSpec.Value
	if err := b.drive(b.Update, machine); err != nil {
		t.Errorf("Update in place without the Secret: %v", err)
	}
	b.waitsForUserData(b.machine(uses), "mine")
	b.noticed(machine)
	if err := b.drive(b.Delete, later); err != nil || b.node(later) != nil {
		t.Errorf("Delete without the Secret: %v, want the instance gone", err)
	}
}
