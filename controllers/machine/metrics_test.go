package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestPhaseChanged(t *testing.T) {
	tcs := map[string]struct {
		before, after string
		want          map[string]float64
	}{
		"a phase entered is observed":        {"", "Provisioning", map[string]float64{"Provisioning": 90}},
		"one that stays is not":              {"Running", "Running", map[string]float64{}},
		"nor is none":                        {"", "", map[string]float64{}},
		"nor is the end, which says nothing": {"Running", "Deleting", map[string]float64{}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			before, after := builder.Machine(builder.Stored(now)), builder.Machine(builder.Stored(now))
			before.Status.Phase, after.Status.Phase = &tc.before, &tc.after
			metrics := NewMetrics()
			metrics.phaseChanged(before, after, now.Add(90*time.Second))
			if diff := cmp.Diff(tc.want, transitions(t, metrics)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// transitions returns the sum of seconds by phase.
func transitions(t *testing.T, metrics *Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "mapi_machine_phase_transition_seconds" {
			t.Errorf("got a series %s", family.GetName())
		}
		for _, series := range family.GetMetric() {
			out[series.GetLabel()[0].GetValue()] = series.GetHistogram().GetSampleSum()
		}
	}
	return out
}
