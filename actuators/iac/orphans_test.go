package iac

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/orphans"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// annotate writes an annotation on the head of a Machine's state, as a person would.
func (b *bench) annotate(machine *machinev1beta1.Machine, name, value string) {
	b.t.Helper()
	key := state.KeyFor(machine.Namespace, machine.UID)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{name: value}}})
	if err != nil {
		b.t.Fatal(err)
	}
	head := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := b.client.Patch(b.t.Context(), head, client.RawPatch(types.MergePatchType, patch)); err != nil {
		b.t.Fatal(err)
	}
}

// orphaned is what the state of a Machine says of itself as one without it.
func (b *bench) orphaned(machine *machinev1beta1.Machine) record.Orphan {
	b.t.Helper()
	stored, err := b.store.Get(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	said, err := record.ReadOrphan(stored.Meta)
	if err != nil {
		b.t.Fatal(err)
	}
	return said
}

// passes passes over the states until something is as wanted.
func (b *bench) passes(pass *orphans.Orphans, wanted func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		if _, err := pass.Check(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		if wanted() {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatal("it is not as wanted after two minutes")
		}
	}
}

// sent returns the events so far that contain a text.
func (b *bench) sent(text string) []string {
	var found []string
	for {
		select {
		case event := <-b.recorder.(*events.FakeRecorder).Events:
			if strings.Contains(event, text) {
				found = append(found, event)
			}
		default:
			return found
		}
	}
}

func TestAStateWithoutItsMachineIsDestroyedOnRequest(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	machine.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: "workers", UID: "u", Controller: ptr.To(true)}}
	b.bring(machine)
	b.vanish(machine)
	b.sent("")
	pass := b.orphans()
	for range 3 {
		if next, err := pass.Check(t.Context()); err != nil || next != 2*time.Minute {
			t.Fatalf("Check: again in %v, %v", next, err)
		}
		b.later(time.Hour)
	}
	said := b.orphaned(machine)
	if said.Mark == nil || !said.Mark.Since.Equal(b.clock.Now().Add(-3*time.Hour).UTC()) || !said.Mark.Destroy.IsZero() || said.MachineSet == nil || said.MachineSet.Name != "workers" {
		t.Errorf("the state says %+v, want that it has been seen without its Machine for three hours, and its MachineSet", said)
	}
	if got := b.sent("OrphanedState"); len(got) != 1 || !strings.HasPrefix(got[0], "Warning ") || !strings.Contains(got[0], machine.Name) {
		t.Errorf("events %q, want one", got)
	}
	if b.node(machine) == nil {
		t.Fatal("the instance was destroyed though nobody asked for it")
	}
	b.annotate(machine, record.OrphanActionAnnotation, record.OrphanDestroy)
	if next, err := pass.Check(t.Context()); err != nil || next != 15*time.Second {
		t.Errorf("Check, while the state is to be destroyed: again in %v, %v", next, err)
	}
	b.passes(pass, func() bool { return b.stateIsGone(state.KeyFor(b.namespace, machine.UID)) })
	if b.node(machine) != nil {
		t.Error("the state is gone, and the instance is not")
	}
}

func TestWhatIsRequestedOfAStateWithItsMachineIsDropped(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	b.annotate(machine, record.OrphanActionAnnotation, record.OrphanDestroy)
	b.annotate(machine, state.Prefix+"orphaned", `{"since":"2026-03-01T12:00:00Z","destroy":"2026-03-02T12:00:00Z"}`)
	if _, err := b.DestroyWithoutMachine(client.ObjectKeyFromObject(machine), machine.UID); err != nil {
		t.Fatal(err)
	}
	b.passes(b.orphans(), func() bool { return b.orphaned(machine).Mark == nil })
	if said := b.orphaned(machine); said.Action != "" || b.node(machine) == nil {
		t.Errorf("the state says %+v, and the instance is there: %t; want nothing requested, and the instance", said, b.node(machine) != nil)
	}
}

// The instance of a state whose Machine is gone may be that of a Machine that was restored from a
// backup, or copied.
func TestAClaimedStateIsKept(t *testing.T) {
	parallel(t)
	for name, names := range map[string]func(anew, gone *machinev1beta1.Machine){
		"by its witness":     func(anew, _ *machinev1beta1.Machine) { anew.Spec.ProviderID = nil },
		"by its provider ID": func(anew, _ *machinev1beta1.Machine) { delete(anew.Annotations, record.WitnessAnnotation) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			machine := b.machine()
			b.bring(machine)
			if err := b.sync(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			b.vanish(machine)
			anew := machine.DeepCopy()
			anew.ResourceVersion, anew.UID, anew.Name = "", "", "anew-"+machine.Name
			names(anew, machine)
			b.apply(anew)
			b.annotate(machine, record.OrphanActionAnnotation, record.OrphanDestroy)
			b.passes(b.orphans(), func() bool {
				mark := b.orphaned(machine).Mark
				return mark != nil && strings.Contains(mark.Problem, anew.Name)
			})
			if b.node(machine) == nil {
				t.Error("the instance was destroyed")
			}
		})
	}
}

func TestWhyAStateIsNotDestroyedIsRecorded(t *testing.T) {
	b := newBench(t)
	machine, misread := b.machine(), b.machine()
	b.bring(machine)
	b.bring(misread)
	b.vanish(machine)
	b.vanish(misread)
	back := b.moves()
	b.annotate(machine, record.OrphanActionAnnotation, record.OrphanDestroy)
	b.annotate(misread, record.OrphanActionAnnotation, "Delete")
	pass := b.orphans()
	problem := func(of *machinev1beta1.Machine, text string) func() bool {
		return func() bool {
			mark := b.orphaned(of).Mark
			return mark != nil && strings.Contains(mark.Problem, text)
		}
	}
	b.passes(pass, problem(machine, "elsewhere.example.com"))
	b.passes(pass, problem(misread, `machine-iac.io/orphan-action is "Delete"; set it to Destroy, or remove it`))
	if b.node(machine) == nil || b.node(misread) == nil {
		t.Error("an instance was destroyed")
	}
	back()
	b.annotate(misread, record.OrphanActionAnnotation, "")
	b.later(time.Hour)
	b.passes(pass, func() bool { return b.stateIsGone(state.KeyFor(b.namespace, machine.UID)) })
	b.passes(pass, func() bool { return b.orphaned(misread).Mark.Problem == "" })
	if b.node(machine) != nil || b.node(misread) == nil {
		t.Error("the one is not destroyed, or the other is")
	}
}

// A run that fails leaves no intent, and the destroy that it was to finish is no less begun.
func TestADestroyThatHadBegunIsRepeated(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	b.vanish(machine)
	seen := record.NewPatch()
	seen.SetOrphanMark(record.OrphanMark{Since: b.clock.Now().UTC(), Begun: true, Problem: "the language host was killed"})
	key := state.KeyFor(machine.Namespace, machine.UID)
	session, err := b.store.Acquire(t.Context(), key, state.AcquireOptions{
		Lock: state.Lock{Owner: b.owner, Run: "failed", Operation: string(runs.Destroy), Epoch: b.leads.Epoch()}, Meta: seen.MetaPatch,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Release(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	b.passes(b.orphans(), func() bool { return b.stateIsGone(key) })
	if b.node(machine) != nil {
		t.Error("the state is gone, and the instance is not")
	}
}

// With the policy for it, a state is destroyed that was without its Machine for the grace period,
// in passes before and after.
func TestThePolicyDestroysAfterTheGracePeriod(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	b.vanish(machine)
	pass := b.orphans()
	pass.GracePeriod = 24 * time.Hour
	check := func(after time.Duration, policy orphans.Policy) {
		t.Helper()
		b.later(after)
		pass.Policy = policy
		if _, err := pass.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check(0, orphans.PolicyDelete)
	check(23*time.Hour, orphans.PolicyDelete)
	if mark := b.orphaned(machine).Mark; mark == nil || !mark.Destroy.IsZero() {
		t.Errorf("after 23 hours the state says %+v, want no decision", mark)
	}
	check(2*time.Hour, orphans.PolicyRetain)
	if mark := b.orphaned(machine).Mark; mark == nil || !mark.Destroy.IsZero() || b.node(machine) == nil {
		t.Errorf("retained after 25 hours, the state says %+v, want no decision", mark)
	}
	pass.Policy = orphans.PolicyDelete
	b.passes(pass, func() bool { return b.stateIsGone(state.KeyFor(b.namespace, machine.UID)) })
	if b.node(machine) != nil {
		t.Error("the state is gone, and the instance is not")
	}
}

func TestThePolicyNeedsTwoLooks(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	key := state.KeyFor(b.namespace, machine.UID)
	pass := b.orphans()
	pass.Policy, pass.GracePeriod = orphans.PolicyDelete, time.Nanosecond
	b.annotate(machine, state.Prefix+"orphaned", `{"since":"2026-01-01T12:00:00Z"}`) // of a time when it was gone, before etcd was restored
	for range 2 {
		if _, err := pass.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if mark := b.orphaned(machine).Mark; mark != nil || b.node(machine) == nil {
		t.Fatalf("with its Machine, the state says %+v", mark)
	}
	b.vanish(machine)
	if _, err := pass.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mark := b.orphaned(machine).Mark; mark == nil || !mark.Destroy.IsZero() {
		t.Errorf("after one look, the state says %+v, want a mark alone", mark)
	}
	b.later(time.Second)
	b.passes(pass, func() bool { return b.stateIsGone(key) })
}
