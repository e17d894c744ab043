package machinehealthcheck

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics are the metrics of the machinehealthcheck controller, by name and namespace of the
// MachineHealthCheck.
type Metrics struct {
	nodesCovered *prometheus.GaugeVec
	remediations *prometheus.CounterVec
	shortCircuit *prometheus.GaugeVec
}

// NewMetrics returns new metrics. Register their Collectors.
func NewMetrics() *Metrics {
	labels := []string{"name", "namespace"}
	return &Metrics{
		nodesCovered: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mapi_machinehealthcheck_nodes_covered",
			Help: "Machines that a MachineHealthCheck covers.",
		}, labels),
		remediations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mapi_machinehealthcheck_remediation_success_total",
			Help: "Machines whose deletion a MachineHealthCheck requested.",
		}, labels),
		shortCircuit: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mapi_machinehealthcheck_short_circuit",
			Help: "1 while too many Machines are unhealthy to remediate, else 0.",
		}, labels),
	}
}

// Collectors returns what to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.nodesCovered, m.remediations, m.shortCircuit}
}

func (m *Metrics) covered(check *machinev1beta1.MachineHealthCheck, machines int) {
	m.nodesCovered.WithLabelValues(check.Name, check.Namespace).Set(float64(machines))
	// Start at zero, so that the first one counts as an increase.
	m.remediations.WithLabelValues(check.Name, check.Namespace)
}

func (m *Metrics) remediated(check *machinev1beta1.MachineHealthCheck) {
	m.remediations.WithLabelValues(check.Name, check.Namespace).Inc()
}

func (m *Metrics) shortCircuited(check *machinev1beta1.MachineHealthCheck, is bool) {
	value := 0.0
	if is {
		value = 1
	}
	m.shortCircuit.WithLabelValues(check.Name, check.Namespace).Set(value)
}

// forget removes the metrics of a MachineHealthCheck.
func (m *Metrics) forget(key types.NamespacedName) {
	m.nodesCovered.DeleteLabelValues(key.Name, key.Namespace)
	m.remediations.DeleteLabelValues(key.Name, key.Namespace)
	m.shortCircuit.DeleteLabelValues(key.Name, key.Namespace)
}
