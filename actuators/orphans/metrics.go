package orphans

import "github.com/prometheus/client_golang/prometheus"

// gauges are what a pass counts.
type gauges struct {
	states  prometheus.Gauge
	held    prometheus.Gauge
	intents prometheus.Gauge
	// instances is set by the inventory.
	instances prometheus.Gauge
}

func newGauges() gauges {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return gauges{
		states:    gauge("machine_iac_orphaned_states", "States in Secrets whose Machine does not exist; each may stand for an instance that is paid for."),
		held:      gauge("machine_iac_machines_module_held", "Machines whose instance was made with another content of a module than the one that is loaded."),
		intents:   gauge("machine_iac_oldest_intent_seconds", "Age of the intent of a run that has not settled for the longest time; zero when there is none."),
		instances: gauge("machine_iac_orphaned_instances", "Instances of the cluster that belong to no Machine and no state, where a module can list them; each is paid for."),
	}
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(descriptions chan<- *prometheus.Desc) {
	for _, gauge := range []prometheus.Gauge{g.states, g.held, g.intents, g.instances} {
		gauge.Describe(descriptions)
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(metrics chan<- prometheus.Metric) {
	for _, gauge := range []prometheus.Gauge{g.states, g.held, g.intents, g.instances} {
		gauge.Collect(metrics)
	}
}
