package observe

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Counters returns all series that are not zero, as name{labels}.
func Counters(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			var labels []string
			for _, label := range series.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			if value := series.GetCounter().GetValue(); value != 0 {
				out[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = value
			}
		}
	}
	return out
}
