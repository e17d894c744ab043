package machinehealthcheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// named makes a target that needs remediation since the time given, of a Machine that a MachineSet
// owns.
func named(name string, since time.Duration, changes ...func(*target)) *target {
	machine := builder.Machine(builder.WithOwner(builder.MachineSet()))
	machine.Name = name
	out := &target{machine: machine, node: builder.Node(), health: healthResult{remediate: true, since: ago(since)}}
	for _, change := range changes {
		change(out)
	}
	return out
}

var (
	wellAgain = func(t *target) { t.health = healthResult{} }
	goingAway = func(t *target) { t.deleting = true }
	marked    = func(t *target) { t.annotated = true }
	asked     = func(t *target) { t.requested = true }
	orphaned  = func(t *target) { t.machine.OwnerReferences = nil }
	hasFailed = func(t *target) { builder.WithPhase("Failed")(t.machine) }
)

func TestTreatmentOf(t *testing.T) {
	baremetal := builder.WithCheckAnnotations(map[string]string{strategyAnnotation: externalBaremetal})
	template := builder.WithRemediationTemplate("example.com/v1", "RebootTemplate", "reboot")
	type modifier = func(*machinev1beta1.MachineHealthCheck)
	tcs := map[string]struct {
		check  []modifier
		target *target
		want   action
	}{
		"what is well is left alone":                       {nil, named("m", 0, wellAgain), nothing},
		"what goes already is left alone":                  {nil, named("m", 0, goingAway), nothing},
		"an owned Machine is deleted":                      {nil, named("m", 0), destroy},
		"one that nobody would replace is skipped":         {nil, named("m", 0, orphaned), skip},
		"another strategy means none":                      {[]modifier{builder.WithCheckAnnotations(map[string]string{strategyAnnotation: "x"})}, named("m", 0), destroy},
		"bare metal is annotated":                          {[]modifier{baremetal}, named("m", 0), annotate},
		"bare metal is annotated without an owner":         {[]modifier{baremetal}, named("m", 0, orphaned), annotate},
		"bare metal is annotated once":                     {[]modifier{baremetal}, named("m", 0, marked), nothing},
		"bare metal that failed is deleted":                {[]modifier{baremetal}, named("m", 0, hasFailed), destroy},
		"even when it was annotated before":                {[]modifier{baremetal}, named("m", 0, hasFailed, marked), destroy},
		"bare metal that failed without owner is skipped":  {[]modifier{baremetal}, named("m", 0, hasFailed, orphaned), skip},
		"a template makes a request":                       {[]modifier{template}, named("m", 0), request},
		"without an owner too":                             {[]modifier{template}, named("m", 0, orphaned), request},
		"and for what failed":                              {[]modifier{template}, named("m", 0, hasFailed), request},
		"once":                                             {[]modifier{template}, named("m", 0, asked), nothing},
		"a template goes before the strategy":              {[]modifier{template, baremetal}, named("m", 0), request},
		"no request for what goes already":                 {[]modifier{template}, named("m", 0, goingAway), nothing},
		"no annotation for what goes already":              {[]modifier{baremetal}, named("m", 0, goingAway), nothing},
		"what goes is left alone without an owner as well": {nil, named("m", 0, goingAway, orphaned), nothing},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := actionFor(builder.MachineHealthCheck(tc.check...), tc.target); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestPlanOf(t *testing.T) {
	type names struct {
		Destroy, Annotate, Request, Skip []string
		Waiting                          int
	}
	baremetal := builder.WithCheckAnnotations(map[string]string{strategyAnnotation: externalBaremetal})
	template := builder.WithRemediationTemplate("example.com/v1", "RebootTemplate", "reboot")
	tcs := map[string]struct {
		check   []func(*machinev1beta1.MachineHealthCheck)
		targets []*target
		limit   int
		want    names
	}{
		"all at once without a limit, oldest trouble first": {
			targets: []*target{named("young", time.Minute), named("old", time.Hour), named("middle", 2*time.Minute)},
			limit:   machineapi.NoLimit,
			want:    names{Destroy: []string{"old", "middle", "young"}},
		},
		"by name where they are as old": {
			targets: []*target{named("b", time.Hour), named("c", time.Hour), named("a", time.Hour)},
			limit:   machineapi.NoLimit,
			want:    names{Destroy: []string{"a", "b", "c"}},
		},
		"the limit takes the oldest": {
			targets: []*target{named("young", time.Minute), named("old", time.Hour), named("middle", 2*time.Minute)},
			limit:   2,
			want:    names{Destroy: []string{"old", "middle"}, Waiting: 1},
		},
		"one that goes uses up the limit, whoever deleted it": {
			targets: []*target{named("m", time.Minute), named("going", 0, wellAgain, goingAway)},
			limit:   1,
			want:    names{Waiting: 1},
		},
		"so does one that is left to bare metal": {
			check:   []func(*machinev1beta1.MachineHealthCheck){baremetal},
			targets: []*target{named("m", time.Minute), named("marked", 0, wellAgain, marked), named("n", 0)},
			limit:   2,
			want:    names{Annotate: []string{"m"}, Waiting: 1},
		},
		"so does one with a request": {
			check:   []func(*machinev1beta1.MachineHealthCheck){template},
			targets: []*target{named("m", time.Minute), named("asked", time.Hour, asked), named("n", 0)},
			limit:   2,
			want:    names{Request: []string{"m"}, Waiting: 1},
		},
		"not a healthy one whose request is about to go": {
			check:   []func(*machinev1beta1.MachineHealthCheck){template},
			targets: []*target{named("m", time.Minute), named("asked", time.Hour, asked, wellAgain)},
			limit:   1,
			want:    names{Request: []string{"m"}},
		},
		"what is skipped uses up nothing": {
			targets: []*target{named("orphan", time.Hour, orphaned), named("m", time.Minute)},
			limit:   1,
			want:    names{Destroy: []string{"m"}, Skip: []string{"orphan"}},
		},
		"what is in flight keeps its place when its treatment changes": {
			check:   []func(*machinev1beta1.MachineHealthCheck){baremetal},
			targets: []*target{named("m", time.Hour), named("failed", time.Minute, marked, hasFailed)},
			limit:   1,
			want:    names{Destroy: []string{"failed"}, Waiting: 1},
		},
		"more in flight than allowed lets nothing new begin": {
			targets: []*target{named("m", time.Minute), named("x", 0, goingAway), named("y", 0, goingAway)},
			limit:   1,
			want:    names{Waiting: 1},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got := planOf(builder.MachineHealthCheck(tc.check...), tc.targets, tc.limit)
			gotNames := names{namesOf(got.destroy), namesOf(got.annotate), namesOf(got.request), namesOf(got.skip), got.waiting}
			if diff := cmp.Diff(tc.want, gotNames); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func namesOf(targets []*target) []string {
	var out []string
	for _, target := range targets {
		out = append(out, target.machine.Name)
	}
	return out
}

func TestInFlightLimit(t *testing.T) {
	tcs := map[string]struct {
		annotations map[string]string
		want        int
		wantContent string
	}{
		"none without the annotation":     {nil, machineapi.NoLimit, ""},
		"that of the annotation":          {map[string]string{machineapi.InFlightAnnotation: "50%"}, 2, ""},
		"one where it cannot be read":     {map[string]string{machineapi.InFlightAnnotation: "some"}, 1, "some"},
		"an empty value is a value, too":  {map[string]string{machineapi.InFlightAnnotation: ""}, 1, ""},
		"a number with what is not of it": {map[string]string{machineapi.InFlightAnnotation: "2 "}, 1, "2 "},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := &scope{check: builder.MachineHealthCheck(builder.WithCheckAnnotations(tc.annotations)), targets: make([]*target, 4)}
			if got := inFlightLimit(s); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if tc.want != 1 {
				if len(s.events) > 0 {
					t.Errorf("got %v, want nothing said", s.events)
				}
				return
			}
			if len(s.events) != 1 || s.events[0].content != tc.wantContent || s.events[0].event.Reason != "InvalidAnnotation" {
				t.Errorf("got %v, want one InvalidAnnotation about %q", s.events, tc.wantContent)
			}
		})
	}
}
