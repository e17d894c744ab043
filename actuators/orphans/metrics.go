package orphans

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// gauges are what a pass counts.
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
		states:  gauge("machine_iac_orphaned_states", "States in Secrets whose Machine does not exist; each may stand for an instance that is paid for."),
		held:    gauge("machine_iac_machines_module_held", "Machines whose instance was made with another content of a module than the one that is loaded."),
		intents: gauge("machine_iac_oldest_intent_seconds", "Age of the intent of a run that has not settled for the longest time; zero when there is none."),
		locks: gauge("machine_iac_oldest_foreign_lock_seconds",
			"Age of the oldest lock on a state that another manager process than the leader holds; zero when there is none."),
		largest: gauge("machine_iac_largest_state_bytes", "Size of the largest state, as JSON."),
		limit:   gauge("machine_iac_state_limit_bytes", "Size above which a state is not stored, as JSON."),
		drifted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "machine_iac_machines_drifted", Help: "Machines whose last drift check found the instance changed or missing.",
		}, []string{"result"}),
		instances: gauge("machine_iac_orphaned_instances", "Instances of the cluster that belong to no Machine and no state, where a module can list them; each is paid for."),
	}
	g.limit.Set(state.MaxSize)
	for _, result := range driftResults {
		g.drifted.WithLabelValues(driftLabel(result))
	}
	return g
}

// driftResults are those of a drift check that found a difference.
var driftResults = []record.DriftResult{record.DriftChanged, record.DriftMissing}

func driftLabel(result record.DriftResult) string { return strings.ToLower(string(result)) }

// show sets what a pass found in the heads of the states.
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
