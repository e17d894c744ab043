package iac

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// poll calls a verb, without letting time pass, until it returns an error with a text.
func (b *bench) poll(verb func() error, want string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		err := verb()
		if err != nil && strings.Contains(err.Error(), want) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("after %s: %v, want an error with %q", patience, err, want)
		}
	}
}

// comesRight drives a verb again, with the failure of before still held for a while, until it
// succeeds.
func (b *bench) comesRight(verb func(context.Context, *machinev1beta1.Machine) error, machine *machinev1beta1.Machine) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		err := b.drive(verb, machine)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("after %s: %v", patience, err)
		}
	}
}

// moves has the credentials lead elsewhere, and returns what leads back.
func (b *bench) moves() (back func()) {
	b.t.Helper()
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: b.namespace, Name: "kubemark-credentials"}
	write := func(server string) string {
		if err := plane.Client.Get(b.t.Context(), key, secret); err != nil {
			b.t.Fatal(err)
		}
		was := string(secret.Data["server"])
		secret.Data["server"] = []byte(server)
		if err := plane.Client.Update(b.t.Context(), secret); err != nil {
			b.t.Fatal(err)
		}
		return was
	}
	was := write("https://elsewhere.example.com:6443")
	return func() { write(was) }
}

func TestAnotherPlaceIsRefused(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	back := b.moves()
	err := b.drive(b.Update, machine)
	if !isReason(err, machinev1beta1.UnsupportedChangeMachineError) || !strings.Contains(err.Error(), "elsewhere.example.com") || !strings.Contains(err.Error(), strings.TrimSuffix(plane.Config.Host, "/")) {
		t.Errorf("Update with the credentials of another place: %#v, want UnsupportedChange that names both and %s", err, plane.Config.Host)
	}
	if there, err := b.Exists(t.Context(), machine); !there || err != nil {
		t.Errorf("Exists: %t, %v; want true: nobody has seen it gone", there, err)
	}
	err = b.drive(b.Delete, machine)
	if !isReason(err, machinev1beta1.DeleteMachineError) || !strings.Contains(err.Error(), "elsewhere.example.com") || b.node(machine) == nil {
		t.Errorf("Delete with the credentials of another place: %v, want a DeleteError, and the instance kept", err)
	}
	back()
	if after := b.node(machine); after == nil || after.UID != before.UID {
		t.Fatal("the instance was touched")
	}
	b.comesRight(b.Delete, machine)
	if b.node(machine) != nil {
		t.Error("the instance is there after a Delete in its own place")
	}
}

// Who may write the credentials can say that an endpoint has a new name.
func TestARenamedPlaceIsTheSame(t *testing.T) {
	parallel(t)
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	secret := &corev1.Secret{}
	write := func(change func()) {
		t.Helper()
		key := types.NamespacedName{Namespace: b.namespace, Name: "kubemark-credentials"}
		if err := plane.Client.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		change()
		if err := plane.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	was, _ := b.record(machine).Place.Value("API server")
	renamed := strings.Replace(was, "127.0.0.1", "localhost", 1)
	write(func() { secret.Data["server"] = []byte(renamed) })
	err := b.drive(b.Update, machine)
	line := "API server: " + was + " => " + renamed
	hint := fmt.Sprintf("add to the annotation %s of Secret %s: %s", desired.FormerPlaceAnnotation, secret.Name, line)
	if !isReason(err, machinev1beta1.UnsupportedChangeMachineError) || !strings.Contains(err.Error(), hint) {
		t.Fatalf("Update under the new name: %v, want UnsupportedChange with %q", err, hint)
	}
	declare := func(line string) {
		t.Helper()
		write(func() {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, desired.FormerPlaceAnnotation, "API server: https://a => https://b\n"+line)
		})
	}
	declare("API server: " + was + " => https://another")
	b.later(time.Hour)
	if err := b.drive(b.Update, machine); err == nil || !strings.Contains(err.Error(), hint) {
		t.Errorf("Update with a line for another name: %v, want %q", err, hint)
	}
	declare(line)
	b.comesRight(b.Update, machine)
	if now, _ := b.record(machine).Place.Value("API server"); now != renamed {
		t.Errorf("the place is recorded as %q, want %q", now, renamed)
	}
	write(func() { delete(secret.Annotations, desired.FormerPlaceAnnotation) })
	if after := b.node(machine); after == nil || after.UID != before.UID {
		t.Fatal("the instance was touched")
	}
	b.comesRight(b.Delete, machine)
	if b.node(machine) != nil {
		t.Error("the instance is there after its deletion")
	}
}

// Wrong credentials that lead elsewhere bind a Machine to that place only as long as something may
// be there.
func TestNothingBindsAMachineToAPlaceWhereNothingWasMade(t *testing.T) {
	eachEngine(t, nothingBindsAMachineToAPlaceWhereNothingWasMade)
}

func nothingBindsAMachineToAPlaceWhereNothingWasMade(t *testing.T, b *bench) {
	machine := b.machine()
	back := b.moves()
	b.poll(func() error { return b.Create(t.Context(), machine) }, "elsewhere.example.com")
	back()
	switch lost := b.record(machine).Intent; {
	case lost != nil && b.uses == v1alpha1.EnginePulumi: // its words for the provider's error may prove nothing
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, record.NoInstanceAnnotation, lost.Abandoned)
	case lost != nil:
		t.Fatalf("the intent is %+v, want none: no request reached an API server", lost)
	}
	b.later(time.Hour) // what has failed is tried again
	b.comesRight(b.Create, machine)
	facts, err := lifecycle.NewFacts(machine, nil, b.installation)
	if err != nil {
		t.Fatal(err)
	}
	for what, place := range map[string]module.Place{"record": b.record(machine).Place, "witness": facts.Witness.Place} {
		if text := place.String(); !strings.Contains(text, strings.TrimSuffix(plane.Config.Host, "/")) {
			t.Errorf("the place of the %s is %q, want %s", what, text, plane.Config.Host)
		}
	}
}

// If no request of a create can have made an instance, a deletion has nothing to look up and needs
// no working credentials.
func TestWhatWasNeverReachedIsNotLookedUp(t *testing.T) {
	for name, wrong := range map[string]func(*corev1.Secret){
		"a wrong token":                  func(s *corev1.Secret) { s.Data["token"] = []byte("this-is-no-token") },
		"a server that does not resolve": func(s *corev1.Secret) { s.Data["server"] = []byte("https://elsewhere.invalid:6443") },
		"a refused connection":           func(s *corev1.Secret) { s.Data["server"] = []byte("https://127.0.0.1:1") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			secret := b.secret("wrong", wrong)
			machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": secret.Name} })
			if err := b.drive(b.Create, machine); !isReason(err, machinev1beta1.CreateMachineError) {
				t.Fatalf("Create: %v, want a CreateError", err)
			}
			if err := b.drive(b.Delete, machine); err != nil || !b.stateIsGone(state.KeyFor(machine.Namespace, machine.UID)) {
				t.Errorf("Delete: %v, want that nothing is left", err)
			}
			if got := strings.Join(b.events(), "\n"); strings.Contains(got, "Deleted the instance") {
				t.Errorf("events %s, want no instance in them", got)
			}
		})
	}
}

// What the infrastructure accepted before the engine was killed may be carried out after the first
// lookup.
func TestALateRequestMakesNoSecondInstance(t *testing.T) {
	eachEngine(t, aLateRequestMakesNoSecondInstance)
}

func aLateRequestMakesNoSecondInstance(t *testing.T, b *bench) {
	machine := b.machine()
	b.bring(machine)
	late := b.node(machine)
	if err := plane.Client.Delete(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	machine.Spec.ProviderID, machine.Status.Addresses = nil, nil // as it was while the instance was made
	b.lose(machine, b.owner)
	create := func() error {
		if err := b.sync(t.Context(), machine); err != nil {
			return err
		}
		return b.Actuator.Create(t.Context(), machine)
	}
	b.poll(create, "next lookup at")
	if b.node(machine) != nil {
		t.Fatal("one lookup that found nothing was believed at once")
	}
	late.ResourceVersion, late.UID = "", ""
	if err := plane.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	b.later(time.Hour)
	b.bring(machine)
	if after := b.node(machine); after == nil || after.UID != late.UID {
		t.Errorf("the Node is %v, want the one that came late", after)
	}
}

func TestADestroyLooksTwice(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	if err := plane.Client.Delete(t.Context(), b.node(machine)); err != nil {
		t.Fatal(err)
	}
	live := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.Name}}
	if err := plane.Client.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	b.poll(func() error { return b.Actuator.Delete(t.Context(), machine) }, "next lookup at")
	left, err := b.store.Get(t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		t.Fatalf("the state of an instance that was not found once: %v, want it kept", err)
	}
	f, err := lifecycle.NewFacts(machine, left, b.installation)
	if err != nil || !f.HasInstance() || !f.Missing() {
		t.Errorf("the state has the instance: %t, and says that it was not found: %t, %v; want both", f.HasInstance(), f.Missing(), err)
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if !b.stateIsGone(state.KeyFor(machine.Namespace, machine.UID)) {
		t.Error("the state outlives an instance that two destroys have not found")
	}
}

// withoutLookup is the kubemark module as it would be without a lookup.
func withoutLookup(t *testing.T) *module.Module {
	t.Helper()
	shipped, err := fs.Sub(modules.FS, "kubemark")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	err = fs.WalkDir(shipped, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "lookup/") || strings.HasPrefix(name, "tests/lookup/") {
			return err
		}
		raw, err := fs.ReadFile(shipped, name)
		if name == "module.yaml" {
			before, after, _ := strings.Cut(string(raw), "  lookup:\n")
			_, after, _ = strings.Cut(after, "  capacity:\n")
			raw = []byte(before + "  capacity:\n" + after)
		}
		files[name] = &fstest.MapFile{Data: raw}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := load.Module(files)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestALostCreateWithoutALookupNeedsAPerson(t *testing.T) {
	b := newBench(t)
	b.loaded = []*module.Module{withoutLookup(t)}
	b.start(shortdir.New(t), "owner-1")
	machine := b.machine()
	b.lose(machine, b.owner)
	_, uncertain := actuators.AsUncertain(b.drive(b.Create, machine))
	if !uncertain || b.node(machine) != nil {
		t.Errorf("Create: uncertain %t, made %t; want that it waits for a person", uncertain, b.node(machine) != nil)
	}
	err := b.drive(b.Delete, machine)
	if doubt, uncertain := actuators.AsUncertain(err); !uncertain || !strings.Contains(doubt.Message, record.NoInstanceAnnotation+": lost") {
		t.Fatalf("Delete: %v, want what a person must do", err)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, record.NoInstanceAnnotation, "lost")
	if err := b.drive(b.Delete, machine); err != nil || !b.stateIsGone(state.KeyFor(machine.Namespace, machine.UID)) {
		t.Errorf("Delete once a person has said that there is nothing: %v", err)
	}
}

// What is decided is decided when the run's turn comes, and not when it was asked for.
func TestARunDecidesWhenItsTurnComes(t *testing.T) {
	b := newBench(t)
	edited, deleted, gone := b.machine(), b.machine(), b.machine()
	waiting := map[*machinev1beta1.Machine]*task{}
	for _, machine := range []*machinev1beta1.Machine{edited, deleted, gone} {
		waiting[machine] = newTask(b.Actuator, machine, runs.Create)
	}
	set(edited, b, "zone", "zone-b")
	if err := b.sync(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if err := plane.Client.Delete(t.Context(), deleted.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	b.vanish(gone)

	if err := waiting[edited].Intend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := string(waiting[edited].wanted.Inputs.Variables); !strings.Contains(got, "zone-b") {
		t.Errorf("a run of a Machine that was edited while it waited is given %s", got)
	}
	for name, machine := range map[string]*machinev1beta1.Machine{"deleted": deleted, "gone": gone} {
		if err := waiting[machine].Intend(t.Context()); !errors.Is(err, runs.ErrNothingToDo) {
			t.Errorf("a create of a Machine that is %s by then: %v, want nothing to do", name, err)
		}
		if waiting[machine].Reason() == "" {
			t.Errorf("a create of a Machine that is %s by then has no reason", name)
		}
		if !b.stateIsGone(state.KeyFor(machine.Namespace, machine.UID)) {
			t.Errorf("a create of a Machine that is %s by then leaves a state", name)
		}
	}
}

func TestAProcessThatLeadsNoMoreTakesNoLock(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.leads.lost.Store(true)
	if err := newTask(b.Actuator, machine, runs.Create).Intend(t.Context()); err == nil || !b.stateIsGone(state.KeyFor(machine.Namespace, machine.UID)) {
		t.Errorf("Intend: %v, want an error and no state", err)
	}
}

// Once the Machine's own state has all that a kept state names, that one may go: by the pass over
// the states, and by a destroy.
func TestAKeptStateGoesOnceItsMachinesStateHasAllOfIt(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	key := state.KeyFor(b.namespace, machine.UID)
	stored, err := b.store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(raw []byte) {
		t.Helper()
		options := state.OrphanOptions{Machine: machine.Name, MachineUID: machine.UID, Missing: []statefile.ResourceID{{Address: "kubectl_manifest.this"}}}
		if _, err := b.store.SaveOrphan(t.Context(), key, raw, options); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() int {
		t.Helper()
		all, err := b.store.Orphans(t.Context(), b.namespace)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	foreign := []byte(`{"version":4,"serial":9,"lineage":"another","outputs":{},"resources":[{"mode":"managed","type":"thing","name":"this",
		"provider":"p","instances":[{"attributes":{"id":"second"}}]}]}`)
	keep(stored.Raw)
	keep(foreign)
	orphans := b.orphans()
	if _, err := orphans.Check(t.Context()); err != nil || kept() != 1 {
		t.Fatalf("look: %v; %d states are kept, want the one alone that names what the Machine's state lacks", err, kept())
	}
	if got := gaugeOf(t, orphans, "machine_iac_orphaned_states"); got != 1 {
		t.Errorf("%v orphans are counted, want 1", got)
	}

	keep(stored.Raw)
	restore := b.misplace(t, machine)
	if _, err := orphans.Check(t.Context()); err != nil || kept() != 2 {
		t.Fatalf("without the Machine's state: %v; %d states are kept, want both", err, kept())
	}
	restore()
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if kept() != 1 {
		t.Errorf("%d states are kept after the destroy, want the one alone that names what the Machine's state lacked", kept())
	}
}

// A Machine that is made anew from a backup names an instance whose state is kept under another
// UID.
func TestAMachineFromABackupIsLeftAlone(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	if err := b.sync(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	b.vanish(machine)
	anew := machine.DeepCopy()
	anew.ResourceVersion, anew.UID = "", ""
	b.apply(anew)
	if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(anew), anew); err != nil {
		t.Fatal(err)
	}
	_, err := b.Exists(t.Context(), anew)
	if doubt, uncertain := actuators.AsUncertain(err); !uncertain || doubt.Reason != "NotAdopted" || !strings.Contains(doubt.Message, string(machine.UID)) {
		t.Errorf("Exists: %v, want that it is not adopted, with the UID that it was copied from", err)
	}
	if _, uncertain := actuators.AsUncertain(b.Delete(t.Context(), anew)); !uncertain || b.node(machine) == nil {
		t.Error("deleting it is not refused, or its instance is gone")
	}
	if b.uses != v1alpha1.EngineTerraform {
		t.Error("the bench is not what this test is written for")
	}
}

func TestALockThatCannotBeReadIsNoticedToBeGone(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	const lock = state.Prefix + "lock"
	b.annotate(machine, lock, "{")
	_, existsErr := b.Exists(t.Context(), machine)
	for verb, err := range map[string]error{"Exists": existsErr, "Update": b.Update(t.Context(), machine)} {
		uncertain, ok := actuators.AsUncertain(err)
		if !ok || uncertain.Reason != "StateUnreadable" || !strings.Contains(uncertain.Message, "reading annotation "+lock) || uncertain.After <= 0 || uncertain.After > time.Minute {
			t.Errorf("%s returns %v, want that the state cannot be read, and that it is read again soon", verb, err)
		}
	}
	key := state.KeyFor(machine.Namespace, machine.UID)
	head := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := b.client.Patch(t.Context(), head, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+lock+`":null}}}`))); err != nil {
		t.Fatal(err)
	}
	if there, err := b.Exists(t.Context(), machine); !there || err != nil {
		t.Errorf("without the lock Exists returns %t, %v", there, err)
	}
	if err := b.drive(b.Update, machine); err != nil {
		t.Errorf("without the lock Update returns %v", err)
	}
}

// Where credentials never become valid, a person ends the search, and at once.
func TestAConfirmationEndsTheBackoff(t *testing.T) {
	b := newBench(t)
	secret := b.secret("wrong", func(s *corev1.Secret) { s.Data["token"] = []byte("this-is-no-token") })
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": secret.Name} })
	b.lose(machine, b.owner)
	err := b.drive(b.Delete, machine)
	for _, want := range []string{"looking up an instance that run lost may have created: ", record.NoInstanceAnnotation + "=lost'"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("Delete: %v, want %s", err, want)
		}
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, record.NoInstanceAnnotation, "lost")
	if err := b.drive(b.Delete, machine); err != nil || !b.stateIsGone(state.KeyFor(machine.Namespace, machine.UID)) {
		t.Errorf("Delete once a person has said that there is nothing: %v", err)
	}
}
