package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
)

// The operator's own series. docs/reference/metrics.md lists them.
var (
	installationCondition = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "machine_iac_installation_condition", Help: "1 if a condition of the installation is True, else 0.",
	}, []string{"condition"})
	operandWrites = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "machine_iac_operand_writes_total", Help: "Objects that the operator created or changed, by kind.",
	}, []string{"kind"})
)

// Collectors returns the series of the operator.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{installationCondition, operandWrites}
}

// observe sets the series of the status.
func observe(status configv1.ClusterOperatorStatus) {
	for _, kind := range []configv1.ClusterStatusConditionType{configv1.OperatorAvailable, configv1.OperatorProgressing,
		configv1.OperatorDegraded} {
		value := 0.0
		if found := condition(status, kind); found != nil && found.Status == configv1.ConditionTrue {
			value = 1
		}
		installationCondition.WithLabelValues(string(kind)).Set(value)
	}
}
