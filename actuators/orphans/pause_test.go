package orphans

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestTheSecondPassComesSoon(t *testing.T) {
	for _, test := range []struct {
		passes     int
		next, want time.Duration
	}{
		{1, interval, secondPass},
		{1, destroyInterval, destroyInterval},
		{2, interval, interval},
	} {
		if got := pause(test.passes, test.next); got != test.want {
			t.Errorf("after %d passes and %s: %s, want %s", test.passes, test.next, got, test.want)
		}
	}
}

func TestManyStatesAreLookedAtLessOften(t *testing.T) {
	for states, want := range map[int]time.Duration{0: interval, 2000: interval, 5000: 5 * time.Minute} {
		if got := intervalFor(states); got != want {
			t.Errorf("%d states are looked at every %s, want %s", states, got, want)
		}
	}
}

// saved is an Actuator without states that could not be saved.
type saved struct{ Actuator }

func (saved) UnsavedStates(context.Context, string) ([]state.Orphan, error) { return nil, nil }

func TestAPassOverManyStatesSaysWhenTheNextIs(t *testing.T) {
	var heads []state.Head
	for i := range 5000 {
		heads = append(heads, state.Head{Key: state.KeyFor("n", types.UID(fmt.Sprint("uid-", i)))})
	}
	next, err := New(Options{Cache: listed{machines: 5000}, Actuator: saved{}}).report(t.Context(), heads)
	if err != nil || next != 5*time.Minute {
		t.Errorf("the next pass comes after %s (%v), want 5 minutes", next, err)
	}
}

// listed is a cache of so many Machines, or one that cannot be read.
type listed struct {
	client.Reader
	machines int
	fails    error
}

func (l listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for i := range l.machines {
		machine := machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", UID: types.UID(fmt.Sprint("uid-", i))}}
		list.(*machinev1beta1.MachineList).Items = append(list.(*machinev1beta1.MachineList).Items, machine)
	}
	return l.fails
}

func TestTheFirstPassLeavesManyMachinesTime(t *testing.T) {
	for _, tc := range []struct {
		cache listed
		want  time.Duration
	}{
		{listed{}, 0},
		{listed{machines: 5000}, 25 * time.Second},
		{listed{machines: 5000, fails: errors.New("not now")}, 0},
	} {
		if got := New(Options{Cache: tc.cache}).firstPass(t.Context()); got != tc.want {
			t.Errorf("with %d Machines (%v) the first pass is made after %s, want %s", tc.cache.machines, tc.cache.fails, got, tc.want)
		}
	}
}

// TestStartPutsTheFirstPassOff: a pass would need the Store, which is not there.
func TestStartPutsTheFirstPassOff(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := New(Options{Cache: listed{machines: 5000}}).Start(ctx); err != nil {
		t.Error(err)
	}
}
