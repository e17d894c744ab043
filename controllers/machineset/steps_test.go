package machineset

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// stubClient fails writes with an error of the test's choice, and lists the given Machines.
type stubClient struct {
	client.Client
	err      error
	machines []machinev1beta1.Machine
	set      *machinev1beta1.MachineSet
	writes   atomic.Int32
}

func (c *stubClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	c.writes.Add(1)
	return c.err
}

func (c *stubClient) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	c.writes.Add(1)
	return c.err
}

func (c *stubClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	c.writes.Add(1)
	return c.err
}

func (c *stubClient) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*machinev1beta1.MachineList).Items = c.machines
	return nil
}

func (c *stubClient) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.set == nil {
		return apierrors.NewNotFound(machinev1beta1.Resource("machinesets"), key.Name)
	}
	c.set.DeepCopyInto(object.(*machinev1beta1.MachineSet))
	return nil
}

func scopeOf(t *testing.T, set *machinev1beta1.MachineSet, replicas ...*machinev1beta1.Machine) *scope {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	return &scope{set: set, selector: selector, machines: replicas, replicas: replicas, room: 1000}
}

var (
	machineResource = machinev1beta1.Resource("machines")
	errForbidden    = apierrors.NewForbidden(machineResource, "m", errors.New("quota"))
	errLost         = errors.New("connection reset by peer")
)

func TestCreationRemembersWhatItDoesNotKnow(t *testing.T) {
	terminating := apierrors.NewForbidden(machineResource, "m", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tcs := map[string]struct {
		err        error
		wantWrites int
		wantError  bool
		wantState  time.Duration
	}{
		"done: wait for the cache":                        {nil, 3, false, time.Minute},
		"refused: nothing to wait for, one try is enough": {errForbidden, 1, true, 0},
		"lost: it may have been done":                     {errLost, 1, true, time.Minute},
		"a namespace that goes is no error":               {terminating, 1, false, 0},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			set := builder.MachineSet(builder.WithReplicas(3))
			flight := newInFlight(clocktesting.NewFakePassiveClock(now), time.Minute)
			c := &stubClient{err: tc.err}
			_, err := (&createMachines{client: c, inFlight: flight}).Reconcile(t.Context(), scopeOf(t, set))
			if (err != nil) != tc.wantError || int(c.writes.Load()) != tc.wantWrites {
				t.Errorf("got error %v after %d writes, want an error: %v, %d writes", err, c.writes.Load(), tc.wantError, tc.wantWrites)
			}
			if got := flight.observe(set, nil, nil); got != tc.wantState {
				t.Errorf("got %+v, want %+v", got, tc.wantState)
			}
		})
	}
}

func TestDeletionRemembersWhatItDoesNotKnow(t *testing.T) {
	tcs := map[string]struct {
		err       error
		wantError bool
		wantState time.Duration
	}{
		"done: wait for the cache":                   {nil, false, time.Minute},
		"gone already: wait for the cache":           {apierrors.NewNotFound(machineResource, "m"), false, time.Minute},
		"another of the name: wait for the cache":    {apierrors.NewConflict(machineResource, "m", errors.New("uid")), false, time.Minute},
		"refused: nothing to wait for":               {errForbidden, true, 0},
		"lost: it may have been done":                {errLost, true, time.Minute},
		"a server error: it may have been done also": {apierrors.NewInternalError(errLost), true, time.Minute},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			set := builder.MachineSet(builder.WithReplicas(0))
			machine := builder.Machine(builder.WithOwner(set), builder.Stored(now))
			clock := clocktesting.NewFakePassiveClock(now)
			flight := newInFlight(clock, time.Minute)
			step := &deleteMachines{client: &stubClient{err: tc.err}, inFlight: flight, clock: clock, shuffle: func(int, func(i, j int)) {}}
			s := scopeOf(t, set, machine)
			if _, err := step.Reconcile(t.Context(), s); (err != nil) != tc.wantError {
				t.Errorf("got error %v, want one: %v", err, tc.wantError)
			}
			if got := flight.observe(set, s.machines, s.replicas); got != tc.wantState {
				t.Errorf("got %+v, want %+v", got, tc.wantState)
			}
		})
	}
}

func TestMachinesWithoutANodeAreMarkedBeforeTheyAreDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		mod        machineMod
		err        error
		wantWrites int
	}{
		"marked and deleted":            {func(*machinev1beta1.Machine) {}, nil, 2},
		"a refused mark keeps none":     {func(*machinev1beta1.Machine) {}, errForbidden, 2},
		"marked before":                 {annotated(machineapi.DeleteAnnotation, "yes"), nil, 1},
		"one with a Node needs no mark": {withNode, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &stubClient{err: tc.err}
			clock := clocktesting.NewFakePassiveClock(now)
			step := &deleteMachines{client: c, inFlight: newInFlight(clock, time.Minute), clock: clock, shuffle: func(int, func(i, j int)) {}}
			machine := builder.Machine(tc.mod)
			_, _ = step.Reconcile(t.Context(), scopeOf(t, builder.MachineSet(builder.WithReplicas(0)), machine))
			if got := int(c.writes.Load()); got != tc.wantWrites {
				t.Errorf("got %d writes, want %d", got, tc.wantWrites)
			}
		})
	}
}

func TestClaimEndsThePassOnAConflict(t *testing.T) {
	set := builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.UID = "set" })
	going := set.DeepCopy()
	at := metav1.NewTime(now)
	going.DeletionTimestamp = &at
	again := set.DeepCopy()
	again.UID = "again"
	orphan := *builder.Machine(builder.WithLabels(set.Spec.Template.Labels))
	ours := *builder.Machine(builder.WithOwner(set))
	stray := *builder.Machine(builder.WithOwner(set), func(m *machinev1beta1.Machine) { m.Labels = nil })
	conflict := apierrors.NewConflict(machineResource, "m", errors.New("changed"))
	gone := apierrors.NewNotFound(machineResource, "m")
	tcs := map[string]struct {
		machine               machinev1beta1.Machine
		live                  *machinev1beta1.MachineSet
		err                   error
		wantGoOn              bool
		wantReplicas, wantPut int
		wantError             bool
	}{
		"ours counts, and nothing is written": {machine: ours, live: set, wantGoOn: true, wantReplicas: 1},
		"an orphan is adopted and counts":     {machine: orphan, live: set, wantGoOn: true, wantReplicas: 1, wantPut: 1},
		"an orphan that another adopted":      {machine: orphan, live: set, err: conflict, wantPut: 1},
		"an orphan that is gone":              {machine: orphan, live: set, err: gone, wantPut: 1},
		"an orphan, refused":                  {machine: orphan, live: set, err: errForbidden, wantPut: 1, wantError: true},
		"no MachineSet to adopt for":          {machine: orphan},
		"a MachineSet that goes adopts none":  {machine: orphan, live: going},
		"nor does another of its name":        {machine: orphan, live: again},
		"a stray is released":                 {machine: stray, live: set, wantGoOn: true, wantPut: 1},
		"a stray that has changed":            {machine: stray, live: set, err: conflict, wantPut: 1},
		"a stray, refused":                    {machine: stray, live: set, err: errForbidden, wantPut: 1, wantError: true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			c := &stubClient{err: tc.err, machines: []machinev1beta1.Machine{tc.machine}, set: tc.live}
			s := scopeOf(t, set)
			proceed, err := (&claimMachines{client: c, reader: c}).Reconcile(t.Context(), s)
			if proceed != tc.wantGoOn || (err != nil) != tc.wantError {
				t.Errorf("got %v, %v; want %v, an error: %v", proceed, err, tc.wantGoOn, tc.wantError)
			}
			if len(s.replicas) != tc.wantReplicas || int(c.writes.Load()) != tc.wantPut {
				t.Errorf("got %d replicas after %d writes, want %d after %d", len(s.replicas), c.writes.Load(), tc.wantReplicas, tc.wantPut)
			}
		})
	}
}
