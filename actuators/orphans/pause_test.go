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
		{listed{machines: 5000}, 10 * time.Second},
		{listed{machines: 5000, fails: errors.New("not now")}, 0},
	} {
		if got := New(Options{Cache: tc.cache}).firstPass(t.Context()); got != tc.want {
			t.Errorf("with %d Machines (%v) the first pass is made after %s, want %s", tc.cache.machines, tc.cache.fails, got, tc.want)
		}
	}
}
