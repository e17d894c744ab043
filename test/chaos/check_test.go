package chaos

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// calm returns a correct fleet of one simulated Node and one server.
func calm() (*Facts, *Expected) {
	return &Facts{
			Machines: []Machine{
				{Name: "k", UID: "u1", Set: "a", Phase: "Running", Linked: true},
				{Name: "o", UID: "u2", Set: "b", Phase: "Running", Linked: true},
			},
			Items: []Item{
				{Kind: "Node", ID: "n1", Name: "k", Machine: "u1"},
				{Kind: "servers", ID: "s1", Name: "o", Machine: "u2"},
				{Kind: "ports", ID: "p1", Name: "o-0", Machine: "u2"},
			},
			States:   []State{{Name: "t1", Machine: "u1", Role: "head"}, {Name: "t2", Machine: "u2", Role: "head"}},
			Kubelets: map[string]string{"s1": "node-of-o"},
		}, &Expected{
			Replicas: map[string]int{"a": 1, "b": 1}, MayFail: map[string]bool{}, Forced: map[string]bool{},
		}
}

func TestFleetFindsWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts, *Expected)
		want   []Harm
	}{
		"nothing is wrong":   {func(*Facts, *Expected) {}, nil},
		"a Machine too few":  {func(_ *Facts, e *Expected) { e.Replicas["a"] = 2 }, []Harm{Lost}},
		"a Machine too many": {func(_ *Facts, e *Expected) { e.Replicas["a"] = 0 }, []Harm{Lost}},
		"a Machine that does not go": {
			func(f *Facts, e *Expected) { f.Machines[0].Deleting, e.Replicas["a"] = true, 0 }, []Harm{Stuck},
		},
		"a Machine of no set": {func(_ *Facts, e *Expected) { delete(e.Replicas, "a") }, []Harm{Stuck}},
		"a Machine that does not come": {
			func(f *Facts, _ *Expected) { f.Machines[0].Phase = "Provisioning" }, []Harm{Stuck},
		},
		"a Machine without its Node": {func(f *Facts, _ *Expected) { f.Machines[1].Linked = false }, []Harm{Stuck}},
		"a Machine that has failed": {
			func(f *Facts, _ *Expected) { f.Machines[0].Phase = "Failed" }, []Harm{Failed},
		},
		"one that may fail": {func(f *Facts, e *Expected) {
			f.Machines[0].Phase, f.Items, e.MayFail["u1"] = "Failed", f.Items[1:], true
		}, nil},
		"an instance that is gone": {func(f *Facts, _ *Expected) { f.Items = f.Items[1:] }, []Harm{Lost}},
		"two instances": {func(f *Facts, _ *Expected) {
			f.Items = append(f.Items, Item{Kind: "servers", ID: "s2", Machine: "u2"})
		}, []Harm{Doubled}},
		"an instance of nobody": {func(f *Facts, _ *Expected) {
			f.Items = append(f.Items, Item{Kind: "servers", ID: "s2", Machine: "u3"})
		}, []Harm{leftOver}},
		"a port of nobody": {func(f *Facts, _ *Expected) {
			f.Items = append(f.Items, Item{Kind: "ports", ID: "p2", Machine: "u3"})
		}, []Harm{leftOver}},
		"no state": {func(f *Facts, _ *Expected) { f.States = f.States[1:] }, []Harm{Lost}},
		"a state of nobody": {func(f *Facts, _ *Expected) {
			f.States = append(f.States, State{Name: "t3", Machine: "u3", Role: "head"})
		}, []Harm{leftOver}},
		"a lock":    {func(f *Facts, _ *Expected) { f.States[0].Lock = "{}" }, []Harm{Stuck}},
		"an intent": {func(f *Facts, _ *Expected) { f.States[0].Intent = "{}" }, []Harm{Stuck}},
		"a rollout that has not ended": {
			func(f *Facts, _ *Expected) { f.Pools = map[string]Pool{"a": {Problem: "MachineSetUpdated"}} }, []Harm{Stuck},
		},
		"a process": {
			func(f *Facts, _ *Expected) { f.Running = []string{"tofu"} }, []Harm{leftOver},
		},
		"a folder": {
			func(f *Facts, _ *Expected) { f.Folders = []string{"runs/x"} }, []Harm{leftOver},
		},
		"forced, and both are kept": {func(f *Facts, e *Expected) { forced(f, e, true, true) }, nil},
		"forced, and not resolved": {
			func(f *Facts, e *Expected) { forced(f, e, true, true); f.States[2].Intent = "{}" }, nil,
		},
		"forced, and nobody knows": {
			func(f *Facts, e *Expected) { forced(f, e, false, true); f.States[2].Intent = "{}" }, nil,
		},
		"forced, and locked": {
			func(f *Facts, e *Expected) { forced(f, e, true, true); f.States[2].Lock = "{}" }, []Harm{Stuck},
		},
		"forced, and both are gone":      {func(f *Facts, e *Expected) { forced(f, e, false, false) }, nil},
		"forced, and the state is lost":  {func(f *Facts, e *Expected) { forced(f, e, true, false) }, []Harm{leftOver}},
		"forced, and the state is a lie": {func(f *Facts, e *Expected) { forced(f, e, false, true) }, []Harm{leftOver}},
	} {
		t.Run(name, func(t *testing.T) {
			f, e := calm()
			tc.change(f, e)
			found := Fleet(f, e)
			if got := harms(found); !slices.Equal(got, tc.want) {
				t.Errorf("found %v, want %v", found, tc.want)
			}
		})
	}
}

// forced adds possible leftovers of a Machine whose finalizer was removed.
func forced(f *Facts, e *Expected, instance, state bool) {
	e.Forced["u3"] = true
	if instance {
		f.Items = append(f.Items, Item{Kind: "servers", ID: "s3", Machine: "u3"})
	}
	if state {
		f.States = append(f.States, State{Name: "t3", Machine: "u3", Role: "head"})
	}
}

func harms(found []Violation) []Harm {
	all := map[Harm]bool{}
	for _, v := range found {
		all[v.Harm] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func TestNothingIsNothing(t *testing.T) {
	f, e := calm()
	if found := Nothing(f, e); len(found) == 0 {
		t.Error("a fleet that is there still")
	}
	if found := Nothing(&Facts{}, e); len(found) > 0 {
		t.Error(found)
	}
	if found := Nothing(&Facts{Kubelets: map[string]string{"s1": "node-of-o"}},
		e); !slices.Equal(harms(found), []Harm{leftOver}) {
		t.Errorf("a Node whose server has gone: %v", found)
	}
}

func TestTwice(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(1000+int64(second), 0) }
	server := func(id string, made, removed int) openstack.Made {
		m := openstack.Made{Kind: "servers", ID: id, Name: "o", Machine: "u2", Made: at(made)}
		if removed > 0 {
			m.Removed = at(removed)
		}
		return m
	}
	outside := server("s1", 1, 5)
	outside.Outside = true
	other := server("s2", 2, 0)
	other.Machine = "u3"
	for name, tc := range map[string]struct {
		history []openstack.Made
		want    int
	}{
		"one":                                     {[]openstack.Made{server("s1", 1, 0)}, 0},
		"two at one time":                         {[]openstack.Made{server("s1", 1, 0), server("s2", 2, 0)}, 1},
		"two at one time, now gone":               {[]openstack.Made{server("s1", 1, 5), server("s2", 2, 6)}, 1},
		"one in place of one that was half made":  {[]openstack.Made{server("s1", 1, 5), server("s2", 6, 0)}, 0},
		"one in place of one that had been":       {[]openstack.Made{server("s1", 1, 50), server("s2", 60, 0)}, 1},
		"one in place of one that was taken away": {[]openstack.Made{outside, server("s2", 6, 0)}, 1},
		"of two Machines":                         {[]openstack.Made{server("s1", 1, 0), other}, 0},
	} {
		if found := Twice(tc.history); len(found) != tc.want {
			t.Errorf("%s: %v", name, found)
		}
	}
	if found := nodesTwice(map[string][]string{"u1": {"n1"}, "u2": {"n2", "n3"}}); len(found) != 1 ||
		!strings.Contains(found[0].Text, "u2") {
		t.Error(found)
	}
}

func TestBoundsOfARollout(t *testing.T) {
	up, coming, going := Machine{Linked: true}, Machine{}, Machine{Linked: true, Deleting: true}
	named := func(uid string, m Machine) Machine { m.UID = uid; return m }
	then := func(replicas, numbers int, machines ...Machine) Pool {
		return Pool{Replicas: replicas, Surge: 1, Numbers: numbers, Machines: machines}
	}
	for name, tc := range map[string]struct {
		then  []Pool
		taken map[string]string
		want  int
	}{
		"the surge":                   {then: []Pool{then(2, 3, up, up, coming)}},
		"more than the surge":         {then: []Pool{then(2, 3, up, up, coming, going)}, want: 1},
		"one too few":                 {then: []Pool{then(2, 3, up, going, coming)}, want: 1},
		"one whose Node is not ready": {then: []Pool{then(2, 2, up, Machine{Linked: true, NotReady: true})}, want: 1},
		"one that a user deleted":     {then: []Pool{then(2, 3, up, named("u", going), coming, coming)}, taken: map[string]string{"u": "a"}},
		"one that was replaced, and one too few": {then: []Pool{
			then(2, 2, named("u", going), up, coming), then(2, 2, up, up), then(2, 2, up, going),
		}, taken: map[string]string{"u": "a"}, want: 1},
		"one of another that is taken": {then: []Pool{then(2, 2, up, coming)}, taken: map[string]string{"u": "b"}, want: 1},
		"scaled up":                    {then: []Pool{then(3, 3, up, up, coming)}},
		"scaled up, and one too few":   {then: []Pool{then(3, 3, up, up, coming), then(3, 3, up, going, coming)}, want: 1},
		"scaled down":                  {then: []Pool{then(1, 3, up, up, coming)}},
		"scaled down, and up to more":  {then: []Pool{then(1, 1, up), then(1, 3, up, up, coming)}, want: 1},
	} {
		b := &bounds{}
		found := append(b.check("a", then(2, 2, coming), nil), b.check("a", then(2, 2, up, up), nil)...)
		for _, p := range tc.then {
			found = append(found, b.check("a", p, tc.taken)...)
		}
		if len(found) != tc.want {
			t.Errorf("%s: %v, want %d", name, found, tc.want)
		}
	}
}
