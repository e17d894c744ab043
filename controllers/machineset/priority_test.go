package machineset

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

type machineMod = func(*machinev1beta1.Machine)

func withError(m *machinev1beta1.Machine) {
	message := "no such image"
	m.Status.ErrorMessage = &message
}

func withReason(m *machinev1beta1.Machine) {
	reason := machinev1beta1.CreateMachineError
	m.Status.ErrorReason = &reason
}

func annotated(key, value string) machineMod {
	return builder.WithAnnotations(map[string]string{key: value})
}

func withNode(m *machinev1beta1.Machine) {
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "n"}
}

func created(at time.Time) machineMod { return builder.Stored(at) }

func TestPriorities(t *testing.T) {
	const random, oldest, newest = "Random", "Oldest", "Newest"
	tenDays := 50 * (1 - math.Exp(-0.1))
	tcs := map[string]struct {
		policy string
		mods   []machineMod
		want   float64
	}{
		"random: being deleted":                               {random, []machineMod{builder.DeletedAt(now), withNode}, 100},
		"random: being deleted beats all marks":               {random, []machineMod{builder.DeletedAt(now), withError, annotated(machineapi.DeleteAnnotation, "yes")}, 100},
		"random: marked":                                      {random, []machineMod{annotated(machineapi.DeleteAnnotation, "yes"), withNode}, 50},
		"random: marked by the legacy name":                   {random, []machineMod{annotated(machineapi.LegacyDeleteAnnotation, "yes"), withNode}, 50},
		"random: marked with the empty value is not marked":   {random, []machineMod{annotated(machineapi.DeleteAnnotation, ""), withNode}, 20},
		"random: marked with any value, even false":           {random, []machineMod{annotated(machineapi.DeleteAnnotation, "false"), withNode}, 50},
		"random: error message":                               {random, []machineMod{withError, withNode}, 50},
		"random: error reason":                                {random, []machineMod{withReason, withNode}, 50},
		"random: failed without a node":                       {random, []machineMod{withError}, 50},
		"random: no node":                                     {random, nil, 40},
		"random: running":                                     {random, []machineMod{withNode}, 20},
		"the empty policy is random":                          {"", []machineMod{withNode}, 20},
		"oldest: being deleted":                               {oldest, []machineMod{builder.DeletedAt(now), created(now)}, 100},
		"oldest: marked":                                      {oldest, []machineMod{annotated(machineapi.DeleteAnnotation, "yes"), created(now)}, 100},
		"oldest: marked by the legacy name":                   {oldest, []machineMod{annotated(machineapi.LegacyDeleteAnnotation, "1"), created(now)}, 100},
		"oldest: error message":                               {oldest, []machineMod{withError, created(now)}, 100},
		"oldest: error reason":                                {oldest, []machineMod{withReason, created(now)}, 100},
		"oldest: created now":                                 {oldest, []machineMod{created(now)}, 0},
		"oldest: never created":                               {oldest, nil, 0},
		"oldest: created in the future":                       {oldest, []machineMod{created(now.Add(time.Hour))}, 0},
		"oldest: ten days":                                    {oldest, []machineMod{created(now.Add(-10 * day)), withNode}, tenDays},
		"oldest: ten days without a node is no different":     {oldest, []machineMod{created(now.Add(-10 * day))}, tenDays},
		"oldest: a century stays below the marks":             {oldest, []machineMod{created(now.Add(-36500 * day))}, 50},
		"newest: being deleted":                               {newest, []machineMod{builder.DeletedAt(now), created(now.Add(-10 * day))}, 100},
		"newest: marked":                                      {newest, []machineMod{annotated(machineapi.DeleteAnnotation, "yes"), created(now.Add(-10 * day))}, 100},
		"newest: error message":                               {newest, []machineMod{withError, created(now.Add(-10 * day))}, 100},
		"newest: created now":                                 {newest, []machineMod{created(now)}, 100},
		"newest: created in the future":                       {newest, []machineMod{created(now.Add(time.Hour))}, 100},
		"newest: never created":                               {newest, nil, 100},
		"newest: ten days":                                    {newest, []machineMod{created(now.Add(-10 * day)), withNode}, 100 - tenDays},
		"newest: ten days, marked with the empty value":       {newest, []machineMod{created(now.Add(-10 * day)), annotated(machineapi.DeleteAnnotation, "")}, 100 - tenDays},
		"newest: a century":                                   {newest, []machineMod{created(now.Add(-36500 * day))}, 50},
		"oldest: marked with the empty value goes by its age": {oldest, []machineMod{created(now.Add(-10 * day)), annotated(machineapi.DeleteAnnotation, "")}, tenDays},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			priority, err := priorityOf(tc.policy)
			if err != nil {
				t.Fatal(err)
			}
			if got := priority(builder.Machine(tc.mods...), now); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if _, err := priorityOf("Biggest"); err == nil {
		t.Error("an unknown policy must be refused")
	}
}

func TestChoose(t *testing.T) {
	named := func(name string, mods ...machineMod) *machinev1beta1.Machine {
		return builder.Machine(append(mods, func(m *machinev1beta1.Machine) { m.Name = name })...)
	}
	machines := []*machinev1beta1.Machine{
		named("d", withNode, created(now.Add(-4*day))),
		named("c", withNode, created(now.Add(-3*day))),
		named("b", created(now.Add(-2*day))),
		named("a", withNode, annotated(machineapi.DeleteAnnotation, "yes"), created(now.Add(-1*day))),
	}
	reversed := func(n int, swap func(i, j int)) {
		for i := range n / 2 {
			swap(i, n-1-i)
		}
	}
	asIs := func(int, func(i, j int)) {}
	tcs := map[string]struct {
		policy  string
		count   int
		shuffle func(int, func(i, j int))
		want    []string
	}{
		"the marked one goes first, then the one without a node": {"Random", 2, asIs, []string{"a", "b"}},
		"equals under random go by lot":                          {"Random", 3, reversed, []string{"a", "b", "d"}},
		"another lot, another machine":                           {"", 3, asIs, []string{"a", "b", "c"}},
		"oldest":                                                 {"Oldest", 3, reversed, []string{"a", "d", "c"}},
		"newest":                                                 {"Newest", 3, reversed, []string{"a", "b", "c"}},
		"no more than there are":                                 {"Newest", 9, asIs, []string{"a", "b", "c", "d"}},
		"none":                                                   {"Newest", 0, asIs, []string{}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			chosen, err := selection{policy: tc.policy, now: now, shuffle: tc.shuffle}.choose(machines, tc.count)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(chosen)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := names(machines); !cmp.Equal(got, []string{"d", "c", "b", "a"}) {
		t.Errorf("the machines given were reordered: %v", got)
	}
}

func names(machines []*machinev1beta1.Machine) []string {
	out := make([]string, 0, len(machines))
	for _, machine := range machines {
		out = append(out, machine.Name)
	}
	return out
}
