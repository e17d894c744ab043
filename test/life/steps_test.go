//go:build life

package life

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// The steps that a platform may lack.
const (
	stepChange    = "A change that is allowed is made in place"
	stepUserData  = "New user data reaches new Machines only"
	stepRotation  = "Credentials are rotated"
	stepImage     = "The image is removed, and what was made from it is checked and deleted"
	stepAdoption  = "Adoption of an instance that something else has made"
	stepDenied    = "A create or deletion that the infrastructure refuses"
	stepCalls     = "Calls of the infrastructure"
	stepInventory = "Inventory of the cluster's instances"
)

// noDenial says why a platform without deny skips that step.
const noDenial = "its infrastructure here refuses nothing on demand"

// step is a part of a Machine's life. Each begins with three Machines that run, and says with which names it goes on.
type step struct {
	name string
	run  func(w *world, t *testing.T)
	// needs returns whether the platform has what the step needs.
	needs func(s *site) bool
}

var steps = []step{
	{"Machines are created", created, nil},
	{"Drift checks find nothing, at once and again", undrifted, nil},
	{stepChange, changedInPlace, func(s *site) bool { return s.change != nil }},
	{"A change that needs a new instance is refused, and hides nothing", refusedChange, nil},
	{"A rollout changes Machines in place, and replaces them where it must", rolledOut, func(s *site) bool { return s.change != nil }},
	{"A MachineHealthCheck replaces a Machine whose instance is gone", replaced, nil},
	{stepUserData, newUserData, func(s *site) bool { return s.userData != nil }},
	{"Without the user data, what exists is checked and deleted", withoutUserData, nil},
	{stepRotation, rotated, func(s *site) bool { return s.rotate != nil }},
	{stepImage, renewed, func(s *site) bool { return s.renew != nil }},
	{"A deleted Machine takes along all that it owns", deleted, nil},
	{"A Machine is deleted whose providerSpec is invalid by then", deletedInvalid, nil},
	{"Recovery of an interrupted create", recovered, nil},
	{stepDenied, denied, func(s *site) bool { return s.deny != nil }},
	{stepAdoption, adopted, func(s *site) bool { return s.copy != nil }},
	{stepInventory, listed, func(s *site) bool { return s.copy != nil }},
	{stepCalls, counted, func(s *site) bool { return s.calls != nil }},
	{"Scaling to zero leaves nothing", nothingLeft, nil},
}

func created(w *world, t *testing.T) {
	ids := map[string]bool{}
	for _, name := range w.running(t, replicas) {
		ids[w.id(t, name)] = true
	}
	if len(ids) != replicas {
		t.Errorf("the instances are %v, want %d", ids, replicas)
	}
}

func undrifted(w *world, t *testing.T) {
	names := w.running(t, replicas)
	w.clean(t, names...)
	w.clean(t, names...)
}

func changedInPlace(w *world, t *testing.T) {
	name := w.running(t, replicas)[0]
	before, made := w.fingerprint(t, name), w.id(t, name)
	w.edit(t, name, w.change)
	w.until(t, "the change is made", func(ctx context.Context) error {
		machine, err := w.get(ctx, name)
		if err == nil {
			err = w.runs(ctx, machine)
		}
		if err == nil && w.fingerprint(t, name) == before {
			err = errors.New("the state is that of before")
		}
		return err
	})
	if w.id(t, name) != made {
		t.Error("there is another instance")
	}
	w.clean(t, name)
}

// fingerprint returns what the state of a Machine says that its instance was last brought to.
func (w *world) fingerprint(t *testing.T, name string) string {
	t.Helper()
	var states corev1.SecretList
	if err := w.client.List(t.Context(), &states, client.InNamespace(lab.Namespace), client.HasLabels{observe.RoleLabel}); err != nil {
		t.Fatal(err)
	}
	for _, state := range states.Items {
		if state.Annotations[observe.OwnerAnnotation] == name {
			return state.Annotations["machine-iac.io/fingerprint"]
		}
	}
	t.Fatalf("there is no state of %s", name)
	return ""
}

func refusedChange(w *world, t *testing.T) {
	name := w.running(t, replicas)[0]
	made := w.id(t, name)
	w.edit(t, name, w.refused)
	w.until(t, "the change is refused", func(ctx context.Context) error {
		machine, err := w.get(ctx, name)
		if err == nil && conditionOf(machine, upToDate).Reason != string(machinev1beta1.UnsupportedChangeMachineError) {
			err = errors.New(describe(machine))
		}
		return err
	})
	if w.id(t, name) != made {
		t.Error("there is another instance")
	}
	w.vanishes(t, name)
	w.delete(t, name)
}

// vanishes removes the instance of a Machine, and waits until drift checks have found that out.
func (w *world) vanishes(t *testing.T, name string) {
	t.Helper()
	if err := w.remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the Machine has failed", func(ctx context.Context) error {
		machine, err := w.get(ctx, name)
		if apierrors.IsNotFound(err) || err == nil && (machine.DeletionTimestamp != nil || phaseOf(machine) == machinev1beta1.PhaseFailed) {
			return nil // a MachineHealthCheck is as quick
		}
		if err != nil {
			return err
		}
		_, err = w.kubectl(ctx, "machine", "drift", "--now", "--wait=30s", name)
		return errors.Join(errors.New(describe(machine)), err)
	})
}

func replaced(w *world, t *testing.T) {
	names := w.running(t, replicas)
	check := &machinev1beta1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: "life"},
		Spec: machinev1beta1.MachineHealthCheckSpec{
			Selector: metav1.LabelSelector{MatchLabels: w.set.Spec.Selector.MatchLabels}, MaxUnhealthy: ptr.To(intstr.FromInt32(1)),
			UnhealthyConditions: []machinev1beta1.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Timeout: metav1.Duration{Duration: time.Hour}}},
		},
	}
	if err := w.client.Create(t.Context(), check); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.client.Delete(context.WithoutCancel(t.Context()), check) }()
	w.vanishes(t, names[0])
	w.gone(t, names[0])
	if now := w.running(t, replicas); slices.Contains(now, names[0]) || !slices.Contains(now, names[1]) || !slices.Contains(now, names[2]) {
		t.Errorf("of %v there are %v now", names, now)
	}
}

func newUserData(w *world, t *testing.T) {
	names := w.running(t, replicas)
	w.userDataIs(t, "second")
	defer w.userDataIs(t, "first")
	w.clean(t, names...)
	w.delete(t, names[0])
	for _, name := range w.running(t, replicas) {
		given, err := w.userData(t.Context(), name)
		if isNew := !slices.Contains(names, name); err != nil || strings.Contains(given, "/etc/second") != isNew || strings.Contains(given, "/etc/first") == isNew {
			t.Errorf("%s, which is new: %t, was given %q, %v", name, isNew, given, err)
		}
	}
	w.clean(t, names[1:]...)
}

func withoutUserData(w *world, t *testing.T) {
	names := w.running(t, replicas)
	if err := w.force(t.Context(), userData("")); err != nil { // while Machines name it, the operator holds it
		t.Fatal(err)
	}
	defer w.userDataIs(t, "first")
	w.clean(t, names...)
	w.scale(t, 0)
	w.delete(t, names[0])
	for _, name := range names[1:] {
		w.gone(t, name)
	}
}

func rotated(w *world, t *testing.T) {
	names := w.running(t, replicas)
	data, err := w.rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{w.credentials.Name, otherCredentials} {
		if err := client.IgnoreNotFound(w.client.Update(t.Context(), secret(name, data))); err != nil {
			t.Fatal(err)
		}
	}
	w.clean(t, names...)
	w.delete(t, names[0])
	w.running(t, replicas)
}

func renewed(w *world, t *testing.T) {
	names := w.running(t, replicas)
	next, err := w.renew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := change(&w.set.Spec.Template.Spec, next); err != nil {
		t.Fatal(err)
	}
	w.clean(t, names...)
	w.scale(t, replicas)
	w.delete(t, names[0])
	w.running(t, replicas)
}

func deleted(w *world, t *testing.T) {
	names := w.running(t, replicas)
	w.delete(t, names[0])
	if now := w.running(t, replicas); !slices.Contains(now, names[1]) || !slices.Contains(now, names[2]) {
		t.Errorf("of %v there are %v now", names, now)
	}
}

// deletedInvalid edits a Machine while no manager is there to check it.
func deletedInvalid(w *world, t *testing.T) {
	const name = "life-invalid"
	w.alone(t, name)
	if err := w.manager.Stop(stopTimeout); err != nil {
		t.Fatal(err)
	}
	w.edit(t, name, w.invalid)
	w.again()
	w.delete(t, name)
}

// recovered kills the manager as soon as the infrastructure has the instance. Where the create has ended by then, it is tried again.
func recovered(w *world, t *testing.T) {
	w.running(t, replicas)
	for attempt := range 3 {
		name := fmt.Sprintf("life-killed-%d", attempt)
		made := w.killed(t, name)
		w.runsNow(t, name)
		if got := w.id(t, name); got != made && !w.replaces {
			t.Errorf("the instance is %s, and %s was made before the kill", got, made)
		}
		w.clean(t, name)
		w.delete(t, name)
		if !t.Failed() && w.inTime {
			return
		}
	}
	if !t.Failed() {
		t.Error("each kill came after the create had ended")
	}
}

// killed kills the manager while a Machine is made, and starts it again. It returns the ID of the instance.
func (w *world) killed(t *testing.T, name string) string {
	t.Helper()
	if w.slow != nil {
		w.slow(true)
		defer w.slow(false)
	}
	w.ask(t, name, nil)
	var ids []string
	for end := time.Now().Add(*patience); len(ids) == 0; time.Sleep(poll / 10) {
		var err error
		if ids, err = w.look(t.Context(), name); err != nil || time.Now().After(end) {
			t.Fatalf("there is no instance of %s: %v", name, err)
		}
	}
	if err := w.manager.Kill(); err != nil {
		t.Fatal(err)
	}
	machine, err := w.get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	w.inTime = machine.Spec.ProviderID == nil
	if w.slow != nil {
		w.slow(false)
	}
	w.again()
	return ids[0]
}

// denied has creates and deletions refused. The refused create is retried and leaves nothing, and the refused deletion leaves all.
func denied(w *world, t *testing.T) {
	const never, late = "life-never", "life-late"
	w.denies(t, denyCreates)
	defer w.denies(t, denyNothing)
	w.ask(t, never, nil)
	w.ask(t, late, nil)
	w.told(t, never)
	w.told(t, late)
	begun := time.Now()
	w.delete(t, never)
	if waited := time.Since(begun); waited > time.Minute {
		t.Errorf("the deletion of a Machine without an instance took %s", waited)
	}
	w.denies(t, denyNothing)
	w.runsNow(t, late)
	made := w.id(t, late)

	w.denies(t, denyDeletions)
	w.must(t, "delete", "machine", late, "--wait=false")
	w.told(t, late)
	if got := w.id(t, late); got != made {
		t.Errorf("after a refused deletion the instance is %s, and was %s", got, made)
	}
	w.denies(t, denyNothing)
	w.gone(t, late)
}

func (w *world) denies(t *testing.T, what denial) {
	t.Helper()
	if err := w.deny(context.WithoutCancel(t.Context()), what); err != nil {
		t.Fatal(err)
	}
}

// told waits until a Machine that is not Failed reports the refusal.
func (w *world) told(t *testing.T, name string) {
	t.Helper()
	w.until(t, name+" says what is refused", func(ctx context.Context) error {
		machine, err := w.get(ctx, name)
		if err == nil && (phaseOf(machine) == machinev1beta1.PhaseFailed || !strings.Contains(describe(machine), w.refusal)) {
			err = errors.New(describe(machine))
		}
		return err
	})
}

func adopted(w *world, t *testing.T) {
	const name = "life-adopted"
	names := w.running(t, replicas)
	w.known(name)
	providerID, err := w.copy(t.Context(), names[0], name)
	if err != nil {
		t.Fatal(err)
	}
	made, given := w.id(t, name), w.given(t, name)
	w.ask(t, name, &providerID)
	out := w.must(t, "machine", "adopt", "-o", "json", name)
	var list inspect.AdoptionList
	if err := json.Unmarshal(out, &list); err != nil || len(list.Items) != 1 || list.Items[0].Result != inspect.AdoptionDone {
		t.Fatalf("kubectl machine adopt prints %s: %v", out, err)
	}
	w.runsNow(t, name)
	w.clean(t, name)
	if got := w.given(t, name); got != given {
		t.Errorf("after the adoption the user data is %q, and was %q", got, given)
	}
	w.until(t, "it is released", func(ctx context.Context) error { // a run that has begun is waited for
		_, err := w.kubectl(ctx, "machine", "release", name, "-o", filepath.Join(w.dir, fmt.Sprintf("released-%d", time.Now().UnixNano())))
		return err
	})
	if got := w.id(t, name); got != made {
		t.Errorf("the instance is %s, and was %s", got, made)
	}
	if err := w.force(t.Context(), &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
	if got := w.id(t, name); got != made {
		t.Errorf("after the Machine was removed the instance is %s", got)
	}
	w.forget(t, name)
}

// given returns the user data of an instance, where the platform has any.
func (w *world) given(t *testing.T, name string) string {
	t.Helper()
	if w.userData == nil {
		return ""
	}
	given, _ := w.userData(t.Context(), name) // what something else has made may have none
	return given
}

// forget removes an instance without a Machine, and the Node that it may have.
func (w *world) forget(t *testing.T, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + name}}
	if err := errors.Join(w.remove(t.Context(), name), client.IgnoreNotFound(w.client.Delete(t.Context(), node))); err != nil {
		t.Fatal(err)
	}
}

func listed(w *world, t *testing.T) {
	const name = "life-orphan"
	names := w.running(t, replicas)
	w.known(name)
	providerID, err := w.copy(t.Context(), names[0], name)
	if err != nil {
		t.Fatal(err)
	}
	w.until(t, "kubectl machine orphans lists it, and nothing else", func(ctx context.Context) error {
		out, err := w.kubectl(ctx, "machine", "orphans", "-o", "json")
		var list inspect.OrphanList
		if err == nil {
			err = json.Unmarshal(out, &list)
		}
		// What another platform has left stays listed, as no Machine is there any more that could list it.
		scheme, _, _ := strings.Cut(providerID, "://")
		own := slices.DeleteFunc(list.Items, func(o inspect.Orphan) bool { return !strings.HasPrefix(o.ProviderID, scheme+"://") })
		if err == nil && (len(own) != 1 || own[0].ProviderID != providerID) {
			err = fmt.Errorf("it prints %s", out)
		}
		return err
	})
	w.forget(t, name)
}

func nothingLeft(w *world, t *testing.T) {
	names := w.running(t, replicas)
	w.scale(t, 0)
	for _, name := range names {
		w.gone(t, name)
	}
	if left, err := w.left(t.Context(), w.names); err != nil || len(left) > 0 {
		t.Errorf("there are %v still, %v", left, err)
	}
}
