package machine

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the series of the machine controller.
type Metrics struct {
	transitions *prometheus.HistogramVec
}

// NewMetrics makes the series; Collectors registers them.
func NewMetrics() *Metrics {
	return &Metrics{
		transitions: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mapi_machine_phase_transition_seconds",
			Help:    "Seconds from a Machine's creation until it entered a phase.",
			Buckets: []float64{5, 10, 20, 30, 60, 90, 120, 180, 240, 300, 360, 480, 600},
		}, []string{"phase"}),
	}
}

// Collectors answers what to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.transitions}
}

func (m *Metrics) phaseChanged(before, after *machinev1beta1.Machine, now time.Time) {
	phase := phaseOf(after)
	if phase == phaseOf(before) || phase == machinev1beta1.PhaseDeleting {
		return
	}
	m.transitions.WithLabelValues(phase).Observe(now.Sub(after.CreationTimestamp.Time).Seconds())
}
