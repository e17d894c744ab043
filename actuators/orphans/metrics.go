package orphans

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// gauges are the results of a pass.
type gauges struct {
	states  prometheus.Gauge
	held    prometheus.Gauge
	intents prometheus.Gauge
	locks   prometheus.Gauge
	largest prometheus.Gauge
	limit   prometheus.Gauge
	drifted *prometheus.GaugeVec
	// instances is set by the inventory.
	instances prometheus.Gauge
}

func newGauges() gauges {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	g := gauges{
		states: gauge("machine_iac_orphaned_states",
			"States without a Machine, and unsaved states that name resources no other state has."),
		held:    gauge("machine_iac_machines_module_held", "Machines that stay on an earlier content of their module."),
		intents: gauge("machine_iac_oldest_intent_seconds", "Age of the oldest unsettled run in seconds, or zero."),
		locks: gauge("machine_iac_oldest_foreign_lock_seconds",
			"Age in seconds of the oldest state lock that a process other than the leader holds, or zero."),
		largest: gauge("machine_iac_largest_state_bytes", "Size of the largest state, as JSON."),
		limit:   gauge("machine_iac_state_limit_bytes", "Maximum size of a state, as JSON."),
		drifted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "machine_iac_machines_drifted", Help: "Machines whose last drift check found the instance changed or missing.",
		}, []string{"result"}),
		instances: gauge("machine_iac_orphaned_instances",
			"Instances without a Machine and a state, older than --orphan-grace-period."),
	}
	g.limit.Set(state.MaxSize)
	for _, result := range driftResults {
		g.drifted.WithLabelValues(driftLabel(result))
	}
	return g
}

// driftResults are the results of drift checks that found a difference.
var driftResults = []record.DriftResult{record.DriftChanged, record.DriftMissing}

func driftLabel(result record.DriftResult) string { return strings.ToLower(string(result)) }

// show sets the gauges from the findings.
func (g gauges) show(found findings) {
	g.intents.Set(found.intent.Seconds())
	g.locks.Set(found.lock.Seconds())
	g.largest.Set(float64(found.largest))
	for _, result := range driftResults {
		g.drifted.WithLabelValues(driftLabel(result)).Set(float64(found.drifted[result]))
	}
}

func (g gauges) all() []prometheus.Collector {
	return []prometheus.Collector{g.states, g.held, g.intents, g.locks, g.largest, g.limit, g.drifted, g.instances}
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(descriptions chan<- *prometheus.Desc) {
	for _, gauge := range g.all() {
		gauge.Describe(descriptions)
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(metrics chan<- prometheus.Metric) {
	for _, gauge := range g.all() {
		gauge.Collect(metrics)
	}
}
