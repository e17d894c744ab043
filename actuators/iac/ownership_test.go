package iac

import (
	"fmt"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// Whoever may write Machines may write the annotation of the witness. No content of it may have an
// instance destroyed that was not created for the Machine.
func TestAForgedWitnessDestroysNothing(t *testing.T) {
	b := newBench(t)
	const victimUID = "5f0c3c4e-1111-4222-8333-444455556666"
	mine := `"uid":"%s","run":"r","since":"2026-01-01T00:00:00Z"`
	for name, forged := range map[string]string{
		"a short identity":                `{` + mine + `,"identityUID":"a"}`,
		"the identity of another Machine": `{` + mine + `,"identityUID":"` + victimUID + `"}`,
		"an adoption":                     `{` + mine + `,"adopted":true}`,
		"an adoption by provider ID":      `{` + mine + `,"adopted":true,"providerID":"kubemark://victim"}`,
		"an instance of its own":          `{` + mine + `}`,
		"a code of another installation": record.Witness{Run: "r", IdentityUID: victimUID}.SignedFor(
			&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, UID: "%s"}}, installation.Generate()),
	} {
		t.Run(name, func(t *testing.T) {
			machine := b.machine()
			victim := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: machine.Name, Labels: map[string]string{"machine-iac.io/machine-uid": victimUID}},
				Spec:       corev1.NodeSpec{ProviderID: "kubemark://victim"},
			}
			if err := plane.Create(t.Context(), victim); err != nil {
				t.Fatal(err)
			}
			machine.Spec.ProviderID = ptr.To(victim.Spec.ProviderID)
			b.claim(machine, strings.ReplaceAll(forged, "%s", string(machine.UID)))
			err := b.drive(b.Delete, machine)
			if err != nil {
				if _, uncertain := actuators.AsUncertain(err); !uncertain {
					t.Errorf("Delete: %v, want that a person is asked, or nothing done", err)
				}
			}
			if b.node(machine) == nil {
				t.Error("the instance of another owner was destroyed")
			}
		})
	}
}

// claim sets the witness annotation of a Machine at the API server, as somebody does who may write
// Machines.
func (b *bench) claim(machine *machinev1beta1.Machine, witness string) {
	b.t.Helper()
	live := &machinev1beta1.Machine{}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(machine), live); err != nil {
		b.t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&live.ObjectMeta, record.WitnessAnnotation, witness)
	if err := b.client.Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, record.WitnessAnnotation, witness)
}

// A witness that somebody has edited, or an earlier version has written, is written anew from the
// state.
func TestAWitnessIsSignedAnewFromTheState(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	b.claim(machine, fmt.Sprintf(`{"uid":%q,"identityUID":"x","run":"r"}`, machine.UID))
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if err := b.sync(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if f := b.factsOf(machine); f.Witness == nil || f.Witness.Unsigned || f.Witness.IdentityUID != "" || f.Witness.Run != "r" {
		t.Errorf("the Machine says of its instance %+v", f.Witness)
	}
}

func TestAnUnreadableWitnessIsReported(t *testing.T) {
	b := newBench(t)
	none, machine := b.machine(), b.machine()
	b.bring(machine)
	for name, tc := range map[string]struct {
		machine       *machinev1beta1.Machine
		exists        bool
		witness, want string
	}{
		"of an instance": {machine, true, `{"uid"`, "cannot be read: unexpected end of JSON input; it is written again from the state"},
		"of nothing":     {none, false, `null`, "cannot be read: it has no uid; restore its value from a backup, or remove the annotation"},
	} {
		t.Run(name, func(t *testing.T) {
			b.claim(tc.machine, tc.witness)
			b.events()
			if exists, err := b.Exists(t.Context(), tc.machine); err != nil || exists != tc.exists {
				t.Errorf("Exists: %t, %v, want %t", exists, err, tc.exists)
			}
			want := "Warning InvalidAnnotation Annotation machine-iac.io/instance " + tc.want
			if sent := b.events(); len(sent) != 1 || !strings.HasPrefix(sent[0], want) {
				t.Errorf("events %q, want %s", sent, want)
			}
		})
	}
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if err := b.sync(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Exists(t.Context(), machine); err != nil || len(b.events()) > 0 {
		t.Errorf("Exists: %v, or an event about the witness that was written again", err)
	}
}

// A Machine of a restored backup may have an instance of which nothing is recorded.
func TestAServerFromBeforeTheTermIsNotMadeTwice(t *testing.T) {
	c := newCloud(t)
	machine := c.machine()
	c.bring(machine)
	made := c.Servers()
	if len(made) != 1 {
		t.Fatalf("%d servers, want one", len(made))
	}
	c.restoreFromBefore(machine)
	c.began(machine.CreationTimestamp.Add(time.Second))
	c.bring(machine)
	if got := c.Servers(); len(got) != 1 || got[0].ID != made[0].ID {
		t.Errorf("servers %v, want %s alone", got, made[0].ID)
	}
	if err := c.drive(c.bench.Delete, machine); err != nil || len(c.Servers()) != 0 {
		t.Errorf("Delete: %v, with %d servers left", err, len(c.Servers()))
	}

	late := c.machine()
	c.began(late.CreationTimestamp.Time)
	c.bring(late)
	if said := c.output(late); strings.HasPrefix(said, "(Lookup of ") {
		t.Error("an instance is looked up for a Machine that was created in this term")
	}
}

// restoreFromBefore takes from the cluster all that says of a Machine's instance, as a backup from
// before its create does.
func (b *bench) restoreFromBefore(machine *machinev1beta1.Machine) {
	b.t.Helper()
	b.loseState(machine)
	live := &machinev1beta1.Machine{}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(machine), live); err != nil {
		b.t.Fatal(err)
	}
	delete(live.Annotations, record.WitnessAnnotation)
	live.Spec.ProviderID = nil
	if err := b.client.Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
	live.Status = machinev1beta1.MachineStatus{}
	if err := b.client.Status().Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
	live.DeepCopyInto(machine)
}

// began sets when the term of the bench's leader began.
func (b *bench) began(at time.Time) { b.leads.began.Store(&at) }

// A state in the Secret of another Machine would have that Machine's deletion destroy the wrong
// instance.
func TestAStateOfAnotherMachineIsRefused(t *testing.T) {
	b := newBench(t)
	one, other := b.machine(), b.machine()
	b.bring(one)
	b.bring(other)
	head := func(of *machinev1beta1.Machine) *corev1.Secret {
		secret, key := &corev1.Secret{}, state.KeyFor(of.Namespace, of.UID)
		if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	own := head(one)
	for name, misplace := range map[string]func(into, from *corev1.Secret){
		"its data": func(into, from *corev1.Secret) { into.Data["tfstate"] = from.Data["tfstate"] },
		"all of it": func(into, from *corev1.Secret) {
			into.Data, into.Annotations = from.Data, from.Annotations
		},
	} {
		into := head(one)
		misplace(into, head(other))
		if err := b.client.Update(t.Context(), into); err != nil {
			t.Fatal(err)
		}
		deleted := one.DeepCopy()
		err := b.drive(b.Delete, deleted)
		if _, uncertain := actuators.AsUncertain(err); !uncertain {
			t.Errorf("%s in the Secret of another: Delete returns %v, want that a person is asked", name, err)
		}
		if b.node(one) == nil || b.node(other) == nil {
			t.Fatalf("%s in the Secret of another: an instance was destroyed", name)
		}
	}
	back := head(one)
	back.Data, back.Annotations = own.Data, own.Annotations
	if err := b.client.Update(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if err := b.drive(b.Delete, one); err != nil || b.node(one) != nil || b.node(other) == nil {
		t.Errorf("with its own state back, Delete returns %v", err)
	}
}

// A Machine that was there before the operator may have an instance although it names none, as
// OpenShift's installer leaves the first ones.
func TestAMachineFromBeforeTheOperatorGetsNoSecondServer(t *testing.T) {
	c := newCloud(t)
	first, second := c.machine(), c.machine()
	c.bring(first)
	made := c.Servers()
	c.restoreFromBefore(first)
	c.Set(first.Name, "machine-iac.io_machine-uid", "") // another actuator writes none
	time.Sleep(time.Until(second.CreationTimestamp.Add(1100 * time.Millisecond)))
	var err error
	if c.installation, err = installation.Ensure(t.Context(), c.client, c.namespace); err != nil {
		t.Fatal(err)
	}
	c.start(shortdir.New(t), "owner-2")

	if err := c.drive(c.Create, first); !strings.Contains(fmt.Sprint(err), "looking up an instance of its name") {
		t.Errorf("Create: %v, want that an instance is looked up first", err)
	}
	planned := func() bool { return strings.Contains(fmt.Sprint(c.drive(c.Update, first)), "adoption planned") }
	for deadline := time.Now().Add(patience); !planned(); time.Sleep(pause) { // Update does not wait for a plan, which changes nothing
		if time.Now().After(deadline) {
			t.Fatal("no plan of the adoption in time")
		}
	}
	if len(c.Servers()) != 1 {
		t.Fatalf("%d servers, want the one that was there", len(c.Servers()))
	}
	c.ask(first, lifecycle.AdoptionAdopt)
	if err := c.drive(c.Update, first); err != nil {
		t.Errorf("Update with the adoption requested: %v", err)
	}
	if err := c.drive(c.Update, first); err != nil || ptr.Deref(first.Spec.ProviderID, "") != "openstack:///"+made[0].ID {
		t.Errorf("Update: %v, with the provider ID %v; want %s", err, ptr.Deref(first.Spec.ProviderID, ""), made[0].ID)
	}

	for deadline := time.Now().Add(patience); !c.factsOf(second).Stored; time.Sleep(pause) {
		if _ = c.drive(c.Update, second); time.Now().After(deadline) {
			t.Fatal("no search for an instance of the other Machine in time")
		}
	}
	for deadline := time.Now().Add(patience); c.factsOf(second).Foreign(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatal("the other Machine is taken for one with an instance")
		}
	}
	c.bring(second)
	if got := c.Servers(); len(got) != 2 {
		t.Errorf("%d servers, want the adopted one and a new one", len(got))
	}
}
