package machineset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	settled, check, wait := cacheState{settled: true}, cacheState{check: true}, func(d time.Duration) cacheState { return cacheState{wait: d} }
	tcs := map[string]struct {
		do                 func(f *inFlight, clock *clocktesting.FakePassiveClock)
		machines, replicas []*machinev1beta1.Machine
		set                *machinev1beta1.MachineSet
		want               cacheState
	}{
		"a MachineSet never met must be checked": {set: set, want: check},
		"one checked and idle is settled": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) { f.learn(set, nil, nil) }, set: set, want: settled,
		},
		"a creation is waited for": {
			do: func(f *inFlight, c *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.creating(set, "a")
				c.SetTime(now.Add(4 * time.Second))
			},
			set: set, want: wait(6 * time.Second),
		},
		"a creation that the cache shows is done": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.creating(set, "a")
			},
			machines: of("a"), replicas: of("a"), set: set, want: settled,
		},
		"a creation that was relabelled at once is done too": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.creating(set, "a")
			},
			machines: of("a"), set: set, want: settled,
		},
		"one of two creations is not enough": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.creating(set, "a")
				f.creating(set, "b")
			},
			machines: of("a"), replicas: of("a"), set: set, want: wait(timeout),
		},
		"a creation that was refused is not waited for": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.creating(set, "a")
				f.notCreated(set, "a")
			},
			set: set, want: settled,
		},
		"a creation that takes too long must be checked": {
			do: func(f *inFlight, c *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.creating(set, "a")
				c.SetTime(now.Add(timeout))
			},
			set: set, want: check,
		},
		"a deletion is waited for": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.deleting(set, "uid-a")
			},
			machines: of("a"), replicas: of("a"), set: set, want: wait(timeout),
		},
		"a deletion that the cache shows is done": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.deleting(set, "uid-a")
			},
			machines: of("a"), set: set, want: settled,
		},
		"a deletion that was refused is not waited for": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.deleting(set, "uid-a")
				f.notDeleted(set, "uid-a")
			},
			machines: of("a"), replicas: of("a"), set: set, want: settled,
		},
		"what the API server reports is waited for": {
			do:  func(f *inFlight, _ *clocktesting.FakePassiveClock) { f.learn(set, []string{"a"}, []types.UID{"uid-b"}) },
			set: set, machines: of("b"), replicas: of("b"), want: wait(timeout),
		},
		"a MachineSet made again under its name is not known": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) { f.learn(set, nil, nil) }, set: again, want: check,
		},
		"one forgotten is not known": {
			do: func(f *inFlight, _ *clocktesting.FakePassiveClock) {
				f.learn(set, nil, nil)
				f.forget(keyOf(set))
			},
			set: set, want: check,
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

func TestUnseen(t *testing.T) {
	set := builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.UID = "set" })
	rival := builder.MachineSet(builder.SelectingAs(set), func(s *machinev1beta1.MachineSet) { s.UID = "rival" })
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	machine := func(name string, mods ...machineMod) machinev1beta1.Machine {
		mods = append([]machineMod{builder.WithOwner(set), func(m *machinev1beta1.Machine) { m.Name, m.UID = name, types.UID(name) }}, mods...)
		return *builder.Machine(mods...)
	}
	orphan := func(m *machinev1beta1.Machine) { m.OwnerReferences = nil }
	deleted := builder.DeletedAt(now)
	stolen := func(m *machinev1beta1.Machine) { m.OwnerReferences = nil; builder.WithOwner(rival)(m) }
	tcs := map[string]struct {
		cached, live []machinev1beta1.Machine
		wantCreated  []string
		wantDeleted  []types.UID
	}{
		"the cache is right":               {cached: []machinev1beta1.Machine{machine("a")}, live: []machinev1beta1.Machine{machine("a")}},
		"a creation is missing":            {live: []machinev1beta1.Machine{machine("a")}, wantCreated: []string{"a"}},
		"one to be adopted is missing":     {live: []machinev1beta1.Machine{machine("a", orphan)}, wantCreated: []string{"a"}},
		"a rival's is nothing to us":       {live: []machinev1beta1.Machine{machine("a", stolen)}},
		"one missing and going is nothing": {live: []machinev1beta1.Machine{machine("a", deleted)}},
		"a deletion is missing": {
			cached: []machinev1beta1.Machine{machine("a")}, live: []machinev1beta1.Machine{machine("a", deleted)}, wantDeleted: []types.UID{"a"},
		},
		"one is gone": {cached: []machinev1beta1.Machine{machine("a")}, wantDeleted: []types.UID{"a"}},
		"one was made again under its name": {
			cached:      []machinev1beta1.Machine{machine("a")},
			live:        []machinev1beta1.Machine{machine("a", func(m *machinev1beta1.Machine) { m.UID = "b" })},
			wantCreated: []string{"a"}, wantDeleted: []types.UID{"a"},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := &scope{set: set, selector: selector}
			for i := range tc.cached {
				s.machines = append(s.machines, &tc.cached[i])
			}
			s.replicas = s.machines
			created, deleted := unseen(s, &machinev1beta1.MachineList{Items: tc.live})
			if diff := cmp.Diff(tc.wantCreated, created); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.wantDeleted, deleted); diff != "" {
				t.Error(diff)
			}
		})
	}
}
