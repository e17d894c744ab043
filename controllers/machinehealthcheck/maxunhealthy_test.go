package machinehealthcheck

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestMaxUnhealthy(t *testing.T) {
	tcs := map[string]struct {
		value     *intstr.IntOrString
		total     int
		want      int
		wantError bool
	}{
		"nothing said allows all":                     {nil, 7, 7, false},
		"a number":                                    {ptr.To(intstr.FromInt32(3)), 5, 3, false},
		"a number may be more than there are":         {ptr.To(intstr.FromInt32(9)), 5, 9, false},
		"a number below zero is none":                 {ptr.To(intstr.FromInt32(-1)), 5, 0, false},
		"a number in quotes":                          {ptr.To(intstr.FromString("3")), 5, 3, false},
		"a number in quotes below zero is none":       {ptr.To(intstr.FromString("-3")), 5, 0, false},
		"a percentage that comes out even":            {ptr.To(intstr.FromString("40%")), 5, 2, false},
		"a percentage is rounded down":                {ptr.To(intstr.FromString("60%")), 7, 4, false},
		"even when it is nearly one more":             {ptr.To(intstr.FromString("99%")), 1, 0, false},
		"a percentage of none":                        {ptr.To(intstr.FromString("50%")), 0, 0, false},
		"zero percent":                                {ptr.To(intstr.FromString("0%")), 5, 0, false},
		"all":                                         {ptr.To(intstr.FromString("100%")), 5, 5, false},
		"a percentage below zero is none":             {ptr.To(intstr.FromString("-40%")), 5, 0, false},
		"more than all is all":                        {ptr.To(intstr.FromString("150%")), 5, 5, false},
		"a word":                                      {ptr.To(intstr.FromString("many")), 5, 0, true},
		"nothing in quotes":                           {ptr.To(intstr.FromString("")), 5, 0, true},
		"a percent sign alone":                        {ptr.To(intstr.FromString("%")), 5, 0, true},
		"a fraction":                                  {ptr.To(intstr.FromString("1.5")), 5, 0, true},
		"a percentage with what does not belong":      {ptr.To(intstr.FromString("40%%")), 5, 0, true},
		"a number that no computer of today can hold": {ptr.To(intstr.FromString("99999999999999999999")), 5, 0, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got, err := maxUnhealthy(tc.value, tc.total)
			if got != tc.want || (err != nil) != tc.wantError {
				t.Errorf("got %d, %v; want %d, an error: %t", got, err, tc.want, tc.wantError)
			}
			if err != nil && !strings.Contains(err.Error(), "spec.maxUnhealthy \""+tc.value.StrVal) {
				t.Errorf("got %q, which does not say what is wrong where", err)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	set := func(replicas int32, mods ...func(*machinev1beta1.MachineSet)) machinev1beta1.MachineSet {
		set := builder.MachineSet(append([]func(*machinev1beta1.MachineSet){builder.WithReplicas(replicas)}, mods...)...)
		set.UID = types.UID(set.Name)
		return *set
	}
	of := func(set machinev1beta1.MachineSet, mods ...func(*machinev1beta1.Machine)) machinev1beta1.Machine {
		return *builder.Machine(append([]func(*machinev1beta1.Machine){builder.WithOwner(&set)}, mods...)...)
	}
	type sets = []machinev1beta1.MachineSet
	type machines = []machinev1beta1.Machine
	one, two := set(1), set(2)
	other := set(3, func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels = nil })
	ending := set(3, func(s *machinev1beta1.MachineSet) { s.DeletionTimestamp = &metav1.Time{Time: now} })
	migrated := set(3, func(s *machinev1beta1.MachineSet) {
		s.Status.AuthoritativeAPI = machinev1beta1.MachineAuthorityClusterAPI
	})
	unsaid := set(0, func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = nil })
	for name, tc := range map[string]struct {
		sets     sets
		machines machines
		want     int
	}{
		"none":                                {sets{two}, machines{of(two), of(two)}, 0},
		"one":                                 {sets{two}, machines{of(two)}, 1},
		"all":                                 {sets{two}, nil, 2},
		"one that is being deleted is there":  {sets{two}, machines{of(two), of(two, builder.DeletedAt(now))}, 0},
		"more than wanted do not make up":     {sets{one, two}, machines{of(one), of(one), of(two)}, 1},
		"one that is not selected is there":   {sets{two}, machines{of(two), of(two, func(m *machinev1beta1.Machine) { m.Labels = nil })}, 0},
		"those of other labels do not count":  {sets{other}, nil, 0},
		"a MachineSet that ends creates none": {sets{ending}, nil, 0},
		"nor does one of Cluster API":         {sets{migrated}, nil, 0},
		"a MachineSet has one by default":     {sets{unsaid}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			selector := labels.SelectorFromSet(labels.Set{builder.RoleLabel: "worker"})
			if got := missing(tc.sets, tc.machines, selector); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestRemediationsAllowed(t *testing.T) {
	tcs := map[string]struct {
		most, unhealthy int
		want            int32
	}{
		"what is left":            {5, 2, 3},
		"nothing":                 {2, 2, 0},
		"never less than nothing": {2, 4, 0},
		"more than fits":          {math.MaxInt32 + 10, 2, math.MaxInt32},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := remediationsAllowed(tc.most, tc.unhealthy); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// shown is what allowance decides and shows.
type shown struct {
	Allowed           bool
	Expected, Healthy int
	Remediations      int32
	Reason, Severity  string
	Events            []string
}

func TestAllowance(t *testing.T) {
	healthy := func() *target { return &target{machine: builder.Machine(), node: builder.Node()} }
	starting := func() *target {
		return &target{machine: builder.Machine(), health: healthResult{starting: true, recheck: time.Minute}}
	}
	unhealthy := func() *target {
		return &target{machine: builder.Machine(), node: builder.Node(), health: healthResult{remediate: true}}
	}
	exempting := builder.WithCheckAnnotations(map[string]string{machineapi.ExemptAnnotation: "true"})
	tcs := map[string]struct {
		check   []func(*machinev1beta1.MachineHealthCheck)
		targets []*target
		missing int
		want    shown
	}{
		"no Machines at all are no reason to stop": {
			want: shown{Allowed: true},
		},
		"all of them may be unhealthy by default": {
			targets: []*target{unhealthy(), unhealthy()},
			want:    shown{Allowed: true, Expected: 2},
		},
		"as many as allowed": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("40%")},
			targets: []*target{healthy(), healthy(), healthy(), unhealthy(), unhealthy()},
			want:    shown{Allowed: true, Expected: 5, Healthy: 3},
		},
		"one more than allowed": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("1")},
			targets: []*target{healthy(), unhealthy(), unhealthy()},
			want: shown{
				Expected: 3, Healthy: 1, Reason: "TooManyUnhealthy", Severity: "Warning",
				Events: []string{"restricted: (total: 3, unhealthy: 2, maxUnhealthy: 1)"},
			},
		},
		"those that are missing count": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("1")},
			targets: []*target{unhealthy()},
			missing: 1,
			want: shown{
				Expected: 2, Reason: "TooManyUnhealthy", Severity: "Warning",
				Events: []string{"restricted: (total: 2, unhealthy: 2, maxUnhealthy: 1); not created by their MachineSet yet: 1"},
			},
		},
		"what is left of the allowance is reported": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("3")},
			targets: []*target{healthy(), unhealthy()},
			want:    shown{Allowed: true, Expected: 2, Healthy: 1, Remediations: 2},
		},
		"starting ones count unless it is said otherwise": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("1")},
			targets: []*target{starting(), starting(), unhealthy()},
			want: shown{
				Expected: 3, Reason: "TooManyUnhealthy", Severity: "Warning",
				Events: []string{"restricted: (total: 3, unhealthy: 3, maxUnhealthy: 1)"},
			},
		},
		"exempt starting ones stay out of the decision, not out of the counts": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("2"), exempting},
			targets: []*target{starting(), starting(), unhealthy()},
			want:    shown{Allowed: true, Expected: 3, Remediations: 1},
		},
		"those past their start are not exempt": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("1"), exempting},
			targets: []*target{starting(), unhealthy(), unhealthy()},
			want: shown{
				Expected: 3, Reason: "TooManyUnhealthy", Severity: "Warning",
				Events: []string{"restricted: (total: 3, unhealthy: 2, maxUnhealthy: 1); starting and exempt: 1"},
			},
		},
		"nor are those that go before they came": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("0"), exempting},
			targets: []*target{{machine: builder.Machine(), deleting: true, health: healthResult{starting: true, recheck: 1}}},
			want: shown{
				Expected: 1, Reason: "TooManyUnhealthy", Severity: "Warning",
				Events: []string{"restricted: (total: 1, unhealthy: 1, maxUnhealthy: 0)"},
			},
		},
		"nor those without a Node where the startup timeout is off, as their start has no end": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("0"), exempting},
			targets: []*target{{machine: builder.Machine()}},
			want: shown{
				Expected: 1, Reason: "TooManyUnhealthy", Severity: "Warning",
				Events: []string{"restricted: (total: 1, unhealthy: 1, maxUnhealthy: 0)"},
			},
		},
		"false is a value too": {
			check: []func(*machinev1beta1.MachineHealthCheck){
				builder.WithMaxUnhealthy("1"), builder.WithCheckAnnotations(map[string]string{machineapi.ExemptAnnotation: "false"}),
			},
			targets: []*target{starting()},
			want:    shown{Allowed: true, Expected: 1},
		},
		"anything else is reported and exempts none": {
			check: []func(*machinev1beta1.MachineHealthCheck){
				builder.WithMaxUnhealthy("1"), builder.WithCheckAnnotations(map[string]string{machineapi.ExemptAnnotation: "yes"}),
			},
			targets: []*target{starting()},
			want:    shown{Allowed: true, Expected: 1, Events: []string{"annotation/machine-iac.io/exempt-starting-machines: yes"}},
		},
		"a maxUnhealthy that cannot be read stops it, and the counts are reported all the same": {
			check:   []func(*machinev1beta1.MachineHealthCheck){builder.WithMaxUnhealthy("some")},
			targets: []*target{healthy(), unhealthy()},
			want: shown{
				Expected: 2, Healthy: 1, Reason: "InvalidMaxUnhealthy", Severity: "Error",
				Events: []string{`restricted: spec.maxUnhealthy "some" is neither a number nor a percentage, so nothing is remediated; ` +
					`use a value such as 3 or 40%`},
			},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			metrics := NewMetrics()
			s := &scope{check: builder.MachineHealthCheck(tc.check...), now: now, targets: tc.targets, missing: tc.missing}
			proceed, err := (&checkMaxUnhealthy{metrics: metrics}).Reconcile(context.Background(), s)
			if err != nil || !proceed {
				t.Fatalf("got %t, %v; the pass must go on", proceed, err)
			}
			if diff := cmp.Diff(tc.want, shownBy(t, s)); diff != "" {
				t.Error(diff)
			}
			if rechecks := s.Result().RequeueAfter > 0; rechecks != (tc.missing > 0) {
				t.Errorf("requeued after %s with %d missing", s.Result().RequeueAfter, tc.missing)
			}
			gauge := fmt.Sprintf("mapi_machinehealthcheck_short_circuit{name=%s,namespace=%s}", s.check.Name, s.check.Namespace)
			wantGauge := map[string]float64{gauge: 1}
			if tc.want.Allowed {
				wantGauge[gauge] = 0
			}
			if diff := cmp.Diff(wantGauge, valuesOf(t, metrics)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func shownBy(t *testing.T, s *scope) shown {
	t.Helper()
	condition := machineapi.FindCondition(s.check.Status.Conditions, "RemediationAllowed")
	if condition == nil {
		t.Fatal("got no condition RemediationAllowed")
	}
	if (condition.Status == corev1.ConditionTrue) != s.allowed {
		t.Errorf("got the condition %s while allowed is %t", condition.Status, s.allowed)
	}
	out := shown{
		Allowed:      s.allowed,
		Expected:     *s.check.Status.ExpectedMachines,
		Healthy:      *s.check.Status.CurrentHealthy,
		Remediations: s.check.Status.RemediationsAllowed,
		Reason:       condition.Reason,
		Severity:     string(condition.Severity),
	}
	for _, stateEvent := range s.events {
		out.Events = append(out.Events, stateEvent.topic+": "+stateEvent.content)
	}
	return out
}
