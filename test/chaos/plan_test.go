package chaos

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

var everything = Limits{On: []Workload{Kubemark, OpenStack, KubemarkPulumi}, Away: 8 * time.Second}

func TestASeedIsAlwaysTheSameRound(t *testing.T) {
	for seed := range uint64(100) {
		if first, again := NewPlan(seed, everything), NewPlan(seed, everything); !reflect.DeepEqual(first, again) {
			t.Fatalf("seed %d:\n%v\n%v", seed, first, again)
		}
	}
	if reflect.DeepEqual(NewPlan(1, everything).Steps, NewPlan(2, everything).Steps) {
		t.Error("two seeds are one round")
	}
}

func TestTwentyRoundsHaveEveryFault(t *testing.T) {
	met := map[Kind]int{}
	for seed := uint64(1); seed <= 20; seed++ {
		for _, kind := range NewPlan(seed, everything).Faults() {
			met[kind]++
		}
	}
	for _, kind := range kinds {
		if met[kind] == 0 {
			t.Errorf("no round of CI has %q", kind)
		}
	}
}

func TestManyRoundsPairFaultsAndActions(t *testing.T) {
	pairs, actions, on := map[[2]Kind]bool{}, map[Action]bool{}, map[Workload]int{}
	for seed := range uint64(500) {
		p := NewPlan(seed, everything)
		faults := p.Faults()
		slices.Sort(faults)
		for i, first := range faults {
			for _, second := range faults[i+1:] {
				pairs[[2]Kind{first, second}] = true
				if clash(first, second) {
					t.Errorf("seed %d has %q and %q together", seed, first, second)
				}
			}
		}
		for _, step := range p.Steps {
			actions[step.Action] = true
		}
		for _, set := range p.Sets {
			on[set.On]++
		}
	}
	if len(pairs) < 250 {
		t.Errorf("%d pairs of faults in 500 rounds", len(pairs))
	}
	if len(actions) != 10 { // a fault is a step without an action
		t.Errorf("actions %v", actions)
	}
	for _, workload := range everything.On {
		if on[workload] < 100 {
			t.Errorf("MachineSets: %v", on)
		}
	}
}

func TestFaultsComeWhereTheyCan(t *testing.T) {
	for seed := range uint64(200) {
		p := NewPlan(seed, everything)
		for _, step := range p.Steps {
			if needed, bound := needs[step.Fault]; bound && p.Sets[step.Set].On != needed {
				t.Errorf("seed %d: %q on %s", seed, step.Fault, p.Sets[step.Set].On)
			}
		}
		for _, kind := range NewPlan(seed, Limits{On: []Workload{Kubemark}, Away: time.Second}).Faults() {
			if _, bound := needs[kind]; bound {
				t.Errorf("seed %d has %q where only %s is", seed, kind, Kubemark)
			}
		}
	}
}

func TestEveryFaultHasAnInjector(t *testing.T) {
	if len(injectors) != len(kinds) {
		t.Errorf("%d injectors for %d faults", len(injectors), len(kinds))
	}
	for _, kind := range kinds {
		if injectors[kind] == nil {
			t.Errorf("nothing injects %q", kind)
		}
	}
}

func TestParseKinds(t *testing.T) {
	for text, want := range map[string][]Kind{
		"": nil, "none": {"none"}, "engine": {killEngine}, "Lease, 409": {"", stateConflict}, "no such fault": nil,
	} {
		got, err := ParseKinds(text)
		if text == "no such fault" {
			if err == nil {
				t.Error("a fault that there is not")
			}
			continue
		}
		if text == "Lease, 409" {
			want[0] = deleteLease
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	if got := NewPlan(3, Limits{On: []Workload{Kubemark}, Away: time.Second, Only: []Kind{"none"}}).Faults(); len(
		got) > 0 {
		t.Errorf("none is %v", got)
	}
}
