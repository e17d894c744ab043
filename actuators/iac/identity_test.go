package iac

import (
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// A Machine that was made anew and got the state of its predecessor goes on with the instance as if
// it had the UID that it was made with.
func TestAMachineMadeAnewGoesOnWithItsState(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	if err := b.sync(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	node := b.node(machine)
	anew := b.madeAnew(machine)
	if err := b.drive(b.Update, anew); err != nil {
		t.Fatalf("Update of the Machine that was made anew: %v", err)
	}
	if after := b.node(machine); after == nil || after.UID != node.UID || after.ResourceVersion != node.ResourceVersion {
		t.Errorf("the Node was %s at version %s, and is %+v", node.UID, node.ResourceVersion, after)
	}
	if *anew.Spec.ProviderID != node.Spec.ProviderID {
		t.Errorf("the Machine's provider ID is %s, want %s", *anew.Spec.ProviderID, node.Spec.ProviderID)
	}
	if check := b.checked(anew); check.Result != record.DriftNone {
		t.Errorf("the drift check found %+v, want nothing", check)
	}

	set(anew, b, "zone", "zone-b")
	if err := b.drive(b.Update, anew); err != nil {
		t.Fatalf("an edit: %v", err)
	}
	if after := b.node(machine); after == nil || after.UID != node.UID || after.Labels["topology.kubernetes.io/zone"] != "zone-b" {
		t.Errorf("after an edit, the Node is %+v", after)
	}
	if err := b.drive(b.Delete, anew); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, and its Node is %v", err, b.node(machine))
	}
}

// Should its state be lost, its instance is found by the UID that it was made with.
func TestTheInstanceOfAMachineMadeAnewIsFoundAgain(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	if err := b.sync(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	node := b.node(machine)
	anew := b.madeAnew(machine)
	w := record.Witness{UID: string(anew.UID), Run: "import", Since: b.clock.Now(), IdentityUID: machine.UID}
	if err := b.writeWitness(t.Context(), anew, w); err != nil {
		t.Fatal(err)
	}
	if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(anew), anew); err != nil {
		t.Fatal(err)
	}
	b.loseState(anew)
	if err := b.drive(b.Update, anew); err != nil {
		t.Fatalf("Update without the state: %v", err)
	}
	if after := b.node(machine); after == nil || after.UID != node.UID || after.Spec.ProviderID != node.Spec.ProviderID {
		t.Errorf("the Node was %s with %s, and is %+v", node.UID, node.Spec.ProviderID, after)
	}
	if got := b.record(anew); got.IdentityUID != machine.UID {
		t.Errorf("the new state has the identity %q, want %q", got.IdentityUID, machine.UID)
	}
}

// madeAnew removes a Machine, makes it again, and gives its state to the new one.
func (b *bench) madeAnew(machine *machinev1beta1.Machine) *machinev1beta1.Machine {
	b.t.Helper()
	stored, err := b.store.Get(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	b.vanish(machine)
	anew := machine.DeepCopy()
	anew.ResourceVersion, anew.UID = "", ""
	b.apply(anew)
	if err := plane.Client.Get(b.t.Context(), client.ObjectKeyFromObject(anew), anew); err != nil {
		b.t.Fatal(err)
	}
	if anew.UID == machine.UID {
		b.t.Fatal("the Machine has the UID that it had")
	}
	meta := record.NewPatch().SetIdentityUID(machine.UID, anew.UID).MetaPatch
	for key, value := range stored.Meta {
		meta[key] = &value
	}
	session, err := b.store.Acquire(b.t.Context(), state.KeyFor(anew.Namespace, anew.UID), state.AcquireOptions{
		Lock: state.Lock{Owner: "import", Run: "import"}, Meta: meta, Attachments: stored.Attachments,
		Labels: map[string]string{state.LabelMachineUID: string(anew.UID)},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := session.Put(b.t.Context(), stored.Raw); err != nil {
		b.t.Fatal(err)
	}
	if err := session.Release(b.t.Context(), nil); err != nil {
		b.t.Fatal(err)
	}
	return anew
}
