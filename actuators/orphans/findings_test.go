package orphans

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestFindingsAreThoseOfTheWorstState(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	locked := func(owner string, ago time.Duration) *state.Lock {
		return &state.Lock{Owner: owner, Run: "r", Since: now.Add(-ago)}
	}
	meta := func(change func(p record.Patch)) map[string]string {
		p := record.NewPatch()
		change(p)
		written := map[string]string{}
		for key, value := range p.MetaPatch {
			written[key] = *value
		}
		return written
	}
	intent := func(ago time.Duration) map[string]string {
		return meta(func(p record.Patch) {
			p.SetIntent(record.Intent{Operation: runs.Create, Run: "r", Since: now.Add(-ago)})
		})
	}
	checked := func(result record.DriftResult) map[string]string {
		return meta(func(p record.Patch) { p.SetCheck(record.DriftCheck{At: now, Result: result}) })
	}
	heads := []state.Head{
		{Size: 10, Lock: locked("me", 3*time.Hour), Meta: intent(time.Minute)},
		{Size: 70, Lock: locked("dead", time.Minute), Meta: intent(time.Hour)},
		{Size: 20, Lock: locked("dead too", time.Hour), Meta: checked(record.DriftChanged)},
		{Meta: checked(record.DriftChanged)},
		{Meta: checked(record.DriftMissing)},
		{Meta: checked(record.DriftNone)},
		{Size: 30, Meta: map[string]string{"intent": "no JSON"}},
	}
	registry := prometheus.NewPedanticRegistry()
	shown := newGauges()
	registry.MustRegister(shown)
	shown.show(findingsOf(heads, "me", now))
	want := map[string]float64{
		"machine_iac_oldest_intent_seconds": 3600, "machine_iac_oldest_foreign_lock_seconds": 3600, "machine_iac_largest_state_bytes": 70,
		"machine_iac_state_limit_bytes": state.MaxSize, "machine_iac_machines_drifted changed": 2, "machine_iac_machines_drifted missing": 1,
		"machine_iac_orphaned_states": 0, "machine_iac_orphaned_instances": 0, "machine_iac_machines_module_held": 0,
	}
	if diff := cmp.Diff(want, values(t, registry)); diff != "" {
		t.Errorf("the series (-want +got):\n%s", diff)
	}

	shown.show(findingsOf(nil, "me", now))
	for name, value := range values(t, registry) {
		if value != 0 && name != "machine_iac_state_limit_bytes" {
			t.Errorf("%s is %v without any state", name, value)
		}
	}
}

// values returns the gauges of a registry by their names, with the values of their labels.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			name := family.GetName()
			for _, label := range series.GetLabel() {
				name += " " + label.GetValue()
			}
			found[name] = series.GetGauge().GetValue()
		}
	}
	return found
}
