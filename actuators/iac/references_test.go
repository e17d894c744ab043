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
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// hidden is in a Secret that Machines may not use, and may be shown nowhere.
const hidden = "s3cr3t-of-another"

// newLabelledBench has an actuator to which the label decides; the bench's credentials have none
// and are listed.
func newLabelledBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.policy = references.New(references.Labelled, "kubemark-credentials")
	b.start(shortdir.New(t), "owner-2")
	return b
}

// userData makes a Secret with user data and labels, and returns what names it in a providerSpec.
func (b *bench) userData(name string, labels map[string]string) func(map[string]any) {
	b.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: labels}, StringData: map[string]string{"userData": hidden}}
	if err := plane.Create(b.t.Context(), secret); err != nil {
		b.t.Fatal(err)
	}
	return func(spec map[string]any) { spec["userDataSecret"] = map[string]any{"name": name} }
}

// label gives a Secret the label that lets Machines use it, and takes it away where the value is
// empty.
func (b *bench) label(name, value string) {
	b.t.Helper()
	text := `"` + value + `"`
	if value == "" {
		text = "null"
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+references.Label+`":`+text+`}}}`))
	if err := plane.Client.Patch(b.t.Context(), secret, patch); err != nil {
		b.t.Fatal(err)
	}
}

// refused fails the test unless a verb says that a Secret may not be used, in a way that a label
// heals.
func (b *bench) refused(err error, reason machinev1beta1.MachineStatusError, secret string) {
	b.t.Helper()
	if !isReason(err, reason) || actuators.IsInvalidConfiguration(err) || !strings.Contains(err.Error(), "the Secret "+secret+" may not be used") {
		b.t.Fatalf("got %v, want %s that names %s", err, reason, secret)
	}
	for _, sent := range b.events() {
		if strings.Contains(sent, hidden) {
			b.t.Errorf("the event %q shows what is in the Secret", sent)
		}
	}
	if strings.Contains(err.Error(), hidden) {
		b.t.Errorf("%v shows what is in the Secret", err)
	}
}

func TestASecretWithoutTheLabelIsNotUsedUntilItComes(t *testing.T) {
	b := newLabelledBench(t)
	machine := b.machine(b.userData("plain", nil))
	b.refused(b.drive(b.Create, machine), machinev1beta1.CreateMachineError, "plain")
	if b.node(machine) != nil {
		t.Error("there is an instance with the user data")
	}
	b.label("plain", "user-data")
	b.bring(machine)
}

func TestCredentialsNeedTheLabelToo(t *testing.T) {
	b := newLabelledBench(t)
	b.secret("others", func(s *corev1.Secret) { s.Data["token"] = []byte(hidden) })
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "others"} })
	b.refused(b.drive(b.Create, machine), machinev1beta1.CreateMachineError, "others")
	if err := b.drive(b.Delete, machine); err != nil {
		t.Errorf("Delete: %v, want a Machine that was never made gone", err)
	}
}

func TestStatesAreNoUserData(t *testing.T) {
	b := newLabelledBench(t)
	other := b.machine()
	b.bring(other)
	key := state.KeyFor(other.Namespace, other.UID)
	b.label(key.Name, "true")
	machine := b.machine(func(spec map[string]any) { spec["userDataSecret"] = map[string]any{"name": key.Name} })
	err := b.drive(b.Create, machine)
	b.refused(err, machinev1beta1.CreateMachineError, key.Name)
	if !strings.Contains(err.Error(), "it holds the state of a Machine") {
		t.Errorf("got %v", err)
	}
}

// TestWhatAnInstanceWasMadeWithStaysUsable takes the label away from what an instance was made
// with. Nothing else is opened by that. A state that an earlier version wrote has the fingerprint
// only.
func TestWhatAnInstanceWasMadeWithStaysUsable(t *testing.T) {
	parallel(t)
	for name, forget := range map[string]bool{"recorded": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			b := newLabelledBench(t)
			machine := b.machine(b.userData("mine", map[string]string{references.Label: "true"}))
			b.bring(machine)
			b.label("mine", "")
			if forget {
				b.forgetInputs(machine)
			}
			if found := b.checked(machine); found.Summary != "" {
				t.Errorf("the drift check found %+v", found)
			}
			if !forget {
				b.edit(machine, "mine", "zone-b")
				if err := b.drive(b.Update, machine); err != nil {
					t.Fatalf("Update: %v, want an update in place with the Secret that it had", err)
				}
			}
			b.userData("plain", nil)
			b.edit(machine, "plain", "zone-b")
			b.refused(b.drive(b.Update, machine), machinev1beta1.UpdateMachineError, "plain")
			if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
				t.Errorf("Delete: %v, want the instance gone", err)
			}
		})
	}
}

// edit gives a Machine another zone and user data.
func (b *bench) edit(machine *machinev1beta1.Machine, userData, zone string) {
	b.t.Helper()
	machine.Spec.ProviderSpec.Value = b.machine(func(spec map[string]any) {
		spec["userDataSecret"], spec["zone"] = map[string]any{"name": userData}, zone
	}).Spec.ProviderSpec.Value
}

// forgetInputs removes from a state what its instance was made with.
func (b *bench) forgetInputs(machine *machinev1beta1.Machine) {
	b.t.Helper()
	key := state.KeyFor(machine.Namespace, machine.UID)
	head := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"machine-iac.inputs":null}}`))
	if err := plane.Client.Patch(b.t.Context(), head, patch); err != nil {
		b.t.Fatal(err)
	}
}
