package lifecycle

import (
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestDriftOf(t *testing.T) {
	spec := builder.ProviderSpec(map[string]any{"apiVersion": "example.io/v1", "kind": "Example"})
	for name, tc := range map[string]struct {
		machine     *machinev1beta1.Machine
		want        v1alpha1.DriftPolicy
		wantMisread string
	}{
		"drift is reported by default": {builder.Machine(), v1alpha1.DriftReport, ""},
		"a Machine may choose": {builder.Machine(func(m *machinev1beta1.Machine) {
			m.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: "Repair"}
		}), v1alpha1.DriftRepair, ""},
		"what is no policy is reported, as drift is": {builder.Machine(func(m *machinev1beta1.Machine) {
			m.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: "repair"}
		}), v1alpha1.DriftReport, "write Report, Repair or Ignore"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.machine.Spec.ProviderSpec.Value = spec
			got := DriftOf(tc.machine)
			if got.Policy != tc.want || !strings.Contains(got.Misread, tc.wantMisread) || (got.Misread == "") != (tc.wantMisread == "") {
				t.Errorf("got %+v, want %s, %q", got, tc.want, tc.wantMisread)
			}
		})
	}
}

func TestRepairDue(t *testing.T) {
	checked := time.Unix(1700000000, 0)
	changed := &record.DriftCheck{At: checked, Result: record.DriftChanged}
	for name, tc := range map[string]struct {
		policy v1alpha1.DriftPolicy
		check  *record.DriftCheck
		repair *record.Repair
		after  time.Duration
		want   bool
	}{
		"drift is repaired at once":                        {v1alpha1.DriftRepair, changed, nil, 0, true},
		"not where it is but reported":                     {v1alpha1.DriftReport, changed, nil, 0, false},
		"nor where there was no check":                     {v1alpha1.DriftRepair, nil, nil, 0, false},
		"nor where it found nothing":                       {v1alpha1.DriftRepair, &record.DriftCheck{At: checked, Result: record.DriftNone}, nil, 0, false},
		"an instance that is gone is never made again":     {v1alpha1.DriftRepair, &record.DriftCheck{At: checked, Result: record.DriftMissing}, nil, 0, false},
		"what was found before the last repair is past":    {v1alpha1.DriftRepair, changed, &record.Repair{At: checked.Add(time.Second), Count: 1}, 48 * time.Hour, false},
		"what comes back soon waits":                       {v1alpha1.DriftRepair, changed, &record.Repair{At: checked.Add(-time.Hour), Count: 1}, 59 * time.Minute, false},
		"until two intervals after the repair":             {v1alpha1.DriftRepair, changed, &record.Repair{At: checked.Add(-time.Hour), Count: 1}, time.Hour, true},
		"each time longer":                                 {v1alpha1.DriftRepair, changed, &record.Repair{At: checked.Add(-time.Hour), Count: 3}, 6 * time.Hour, false},
		"and a day at most":                                {v1alpha1.DriftRepair, changed, &record.Repair{At: checked.Add(-time.Hour), Count: 99}, 23 * time.Hour, true},
		"one that was refused is tried again all the same": {v1alpha1.DriftRepair, changed, &record.Repair{At: checked.Add(-2 * time.Hour), Count: 1, Refused: "no"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Facts{Drift: DriftSetting{Policy: tc.policy}, Record: record.Record{Check: tc.check, Repair: tc.repair}}
			if got := repairDue(f, time.Hour, checked.Add(tc.after)); got != tc.want {
				t.Errorf("due is %t, want %t", got, tc.want)
			}
		})
	}
}
