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
	picks    *prometheus.CounterVec
}

// NewMetrics makes the series of a pool that serves engines ("terraform", "pulumi"). Those of an engine are there from the start.
func NewMetrics(engines ...string) *Metrics {
	labels := []string{"engine", "operation"}
	buckets := []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	m := &Metrics{
		queued:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "machine_iac_runs_queued", Help: "Engine runs that wait for a worker."}, labels),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "machine_iac_runs_running", Help: "Engine runs that execute now."}, labels),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "machine_iac_run_queue_seconds", Help: "Seconds from submission to start of a run.", Buckets: buckets,
		}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "machine_iac_run_duration_seconds", Help: "Seconds that a run took, intent and settlement included.", Buckets: buckets,
		}, append(labels, "result")),
		picks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machine_iac_run_picks_total", Help: "Runs that started, by how they came to their turn: turn, reserved, aged or lifted.",
		}, []string{"engine", "operation", "pick"}),
	}
	for _, engine := range engines {
		for _, operation := range precedence {
			m.queued.WithLabelValues(engine, string(operation))
			m.running.WithLabelValues(engine, string(operation))
		}
	}
	return m
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
	return []prometheus.Collector{m.queued, m.running, m.waits, m.duration, m.picks}
}

// waiting counts a run that begins or ends to wait.
func (m *Metrics) waiting(r *run, more float64) {
	m.queued.WithLabelValues(r.Engine, string(r.Operation)).Add(more)
}

// started counts a run that got a worker, by why it was picked.
func (m *Metrics) started(r *run, pick string) {
	m.picks.WithLabelValues(r.Engine, string(r.Operation), pick).Inc()
	m.waiting(r, -1)
	m.running.WithLabelValues(r.Engine, string(r.Operation)).Inc()
	m.waits.WithLabelValues(r.Engine, string(r.Operation)).Observe(r.status.StartedAt.Sub(r.status.QueuedAt).Seconds())
}

func (m *Metrics) ended(r *run, now time.Time, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.running.WithLabelValues(r.Engine, string(r.Operation)).Dec()
	m.duration.WithLabelValues(r.Engine, string(r.Operation), result).Observe(now.Sub(r.status.StartedAt).Seconds())
}
