package runs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the series of a pool.
type Metrics struct {
	queued   *prometheus.GaugeVec
	running  *prometheus.GaugeVec
	waits    *prometheus.HistogramVec
	duration *prometheus.HistogramVec
}

// NewMetrics makes the series of the pool that serves an engine ("terraform", "pulumi").
func NewMetrics(engine string) *Metrics {
	labels := prometheus.Labels{"engine": engine}
	buckets := []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	return &Metrics{
		queued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "machine_iac_runs_queued", Help: "Engine runs that wait for a worker.", ConstLabels: labels,
		}, []string{"operation"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "machine_iac_runs_running", Help: "Engine runs that execute now.", ConstLabels: labels,
		}, []string{"operation"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "machine_iac_run_queue_seconds", Help: "Seconds from submission to start of a run.", ConstLabels: labels, Buckets: buckets,
		}, []string{"operation"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "machine_iac_run_duration_seconds", Help: "Seconds that a run took, intent and settlement included.", ConstLabels: labels, Buckets: buckets,
		}, []string{"operation", "result"}),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, collector := range m.all() {
		collector.Describe(descriptions)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	for _, collector := range m.all() {
		collector.Collect(metrics)
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.queued, m.running, m.waits, m.duration}
}

func (m *Metrics) depth(operation Operation, queued, running int) {
	m.queued.WithLabelValues(string(operation)).Set(float64(queued))
	m.running.WithLabelValues(string(operation)).Set(float64(running))
}

func (m *Metrics) started(status Status) {
	m.waits.WithLabelValues(string(status.Operation)).Observe(status.StartedAt.Sub(status.QueuedAt).Seconds())
}

func (m *Metrics) ended(status Status, now time.Time, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.duration.WithLabelValues(string(status.Operation), result).Observe(now.Sub(status.StartedAt).Seconds())
}
