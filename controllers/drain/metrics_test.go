package drain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// gathered returns each series by its name and first label's value: gauges as they are, histograms
// as the sum of seconds.
func gathered(t *testing.T, metrics *Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			name := family.GetName()
			if labels := series.GetLabel(); len(labels) > 0 {
				name += " " + labels[0].GetValue()
			}
			out[name] = series.GetGauge().GetValue() + series.GetHistogram().GetSampleSum()
		}
	}
	return out
}

func depths(t *testing.T, metrics *Metrics) (waiting, running float64) {
	t.Helper()
	all := gathered(t, metrics)
	return all["machine_iac_drains_waiting"], all["machine_iac_drains_running"]
}

func TestMetricsHaveStableNames(t *testing.T) {
	metrics := NewMetrics()
	metrics.depth(3, 2)
	metrics.ended("success", time.Minute)
	metrics.ended("timeout", time.Hour)
	want := map[string]float64{
		"machine_iac_drains_waiting": 3, "machine_iac_drains_running": 2,
		"machine_iac_drain_duration_seconds success": 60, "machine_iac_drain_duration_seconds timeout": 3600,
	}
	if diff := cmp.Diff(want, gathered(t, metrics)); diff != "" {
		t.Error(diff)
	}
}
