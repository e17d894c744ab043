package machineset

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestInFlight(t *testing.T) {
	const timeout = 10 * time.Second
	set := builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.UID = "set" })
	again := set.DeepCopy()
	again.UID = "set-again"
	machine := func(name string) *machinev1beta1.Machine {
		return builder.Machine(builder.WithOwner(set), func(m *machinev1beta1.Machine) { m.Name, m.UID = name, types.UID("uid-"+name) })
	}
	of := func(names ...string) []*machinev1beta1.Machine {
		out := make([]*machinev1beta1.Machine, 0, len(names))
		for _, name := range names {
			out = append(out, machine(name))
		}
		return out
	}
	tcs := map[string]struct {
		do                 func(f *inFlight, clock *clocktesting.FakePassiveClock)
		machines, replicas []*machinev1beta1.Machine
		set                *machinev1beta1.MachineSet
		want               time.Duration
	}{
		"a creation is waited for": {
			do: func(f *inFlight, c *clocktesting.FakePassiveClock) {
				f.creating(set, "a")
				c.SetTime(now.Add(4 * time.Second))
			},
			set: set, want: 6 * time.Second,
		},
		"a creation that the cache shows is done": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.creating(set, "a")
			},
			machines: of("a"), replicas: of("a"), set: set,
		},
		"a creation that was relabelled at once is done too": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.creating(set, "a")
			},
			machines: of("a"), set: set,
		},
		"one of two creations is not enough": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.creating(set, "a")
				f.creating(set, "b")
			},
			machines: of("a"), replicas: of("a"), set: set, want: timeout,
		},
		"a creation that was refused is not waited for": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.creating(set, "a")
				f.notCreated(set, "a")
			},
			set: set,
		},
		"a creation that takes too long is waited for no more": {
			do: func(f *inFlight, c *clocktesting.FakePassiveClock) {
				f.creating(set, "a")
				c.SetTime(now.Add(timeout))
			},
			set: set,
		},
		"a deletion is waited for": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.deleting(set, "uid-a")
			},
			machines: of("a"), replicas: of("a"), set: set, want: timeout,
		},
		"a deletion that the cache shows is done": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.deleting(set, "uid-a")
			},
			machines: of("a"), set: set,
		},
		"a deletion that was refused is not waited for": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.deleting(set, "uid-a")
				f.notDeleted(set, "uid-a")
			},
			machines: of("a"), replicas: of("a"), set: set,
		},
		"what was done for a MachineSet of the same name before is not": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) { f.creating(set, "a") }, set: again,
		},
		"nor what is forgotten": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.creating(set, "a")
				f.forget(keyOf(set))
			},
			set: set,
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(now)
			f := newInFlight(clock, timeout)
			if tc.do != nil {
				tc.do(f, clock)
			}
			if got := f.observe(tc.set, tc.machines, tc.replicas); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
