package machinehealthcheck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestMetrics(t *testing.T) {
	metrics := NewMetrics()
	check := builder.MachineHealthCheck()
	labels := fmt.Sprintf("{name=%s,namespace=%s}", check.Name, check.Namespace)
	metrics.covered(check, 3)
	if count, ok := valuesOf(t, metrics)["mapi_machinehealthcheck_remediation_success_total"+labels]; !ok || count != 0 {
		t.Errorf("before the first remediation the count is %v, there is one: %t; want zero", count, ok)
	}
	metrics.remediated(check)
	metrics.remediated(check)
	metrics.shortCircuited(check, true)
	want := map[string]float64{
		"mapi_machinehealthcheck_nodes_covered" + labels:             3,
		"mapi_machinehealthcheck_remediation_success_total" + labels: 2,
		"mapi_machinehealthcheck_short_circuit" + labels:             1,
	}
	if diff := cmp.Diff(want, valuesOf(t, metrics)); diff != "" {
		t.Error(diff)
	}
	metrics.forget(client.ObjectKeyFromObject(check))
	if got := valuesOf(t, metrics); len(got) > 0 {
		t.Errorf("got %v of a MachineHealthCheck that is gone", got)
	}
}

// valuesOf returns the value of each series.
func valuesOf(t *testing.T, metrics *Metrics) map[string]float64 {
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
			var labels []string
			for _, label := range series.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			key := fmt.Sprintf("%s{%s}", family.GetName(), strings.Join(labels, ","))
			out[key] = series.GetGauge().GetValue() + series.GetCounter().GetValue()
		}
	}
	return out
}
