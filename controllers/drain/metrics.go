package drain

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a drain that has ended.
const (
	resultSuccess = "success"
	resultTimeout = "timeout"
)

// Metrics are the series of the drain controller.
type Metrics struct {
	waiting   prometheus.Gauge
	running   prometheus.Gauge
	durations *prometheus.HistogramVec
}

// NewMetrics returns new metrics. Register their Collectors.
func NewMetrics() *Metrics {
	m := &Metrics{
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "machine_iac_drains_waiting",
			Help: "Queued drains.",
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "machine_iac_drains_running",
			Help: "Running drains.",
		}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "machine_iac_drain_duration_seconds",
			Help:    "Duration of a drain in seconds. result is success or timeout.",
			Buckets: []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 43200},
		}, []string{"result"}),
	}
	for _, result := range []string{resultSuccess, resultTimeout} {
		m.durations.WithLabelValues(result)
	}
	return m
}

// Collectors returns what to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.waiting, m.running, m.durations}
}

func (m *Metrics) depth(waiting, running int) {
	m.waiting.Set(float64(waiting))
	m.running.Set(float64(running))
}

func (m *Metrics) ended(result string, took time.Duration) {
	m.durations.WithLabelValues(result).Observe(took.Seconds())
}
