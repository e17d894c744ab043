package runs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a run.
const (
	resultSuccess = "success"
	resultFailure = "failure"
)

// seriesLabels label the series about one kind of run.
var seriesLabels = []string{"engine", "operation"}

var oldestQueued = prometheus.NewDesc("machine_iac_run_oldest_queued_seconds",
	"Seconds that the oldest queued run has waited, or zero.", seriesLabels, nil)

var throttledSeconds = prometheus.NewDesc("machine_iac_credentials_throttled_seconds",
	"Seconds since the infrastructure began to throttle a credentials Secret. Absent while it does not.",
	[]string{"credentials"}, nil)

// Metrics are the Prometheus series of a pool.
type Metrics struct {
	engines  []string
	queued   *prometheus.GaugeVec
	running  *prometheus.GaugeVec
	waits    *prometheus.HistogramVec
	duration *prometheus.HistogramVec
	picks    *prometheus.CounterVec
	// longestWaits and throttled come from the pool; nil before there is one.
	longestWaits func() map[kindOfRun]time.Duration
	throttled    func() map[string]time.Duration
}

// kindOfRun identifies the series of a run.
type kindOfRun struct {
	engine    string
	operation Operation
}

// NewMetrics returns the series of a pool that serves the given engines ("terraform", "pulumi").
// Their series exist from the start.
func NewMetrics(engines ...string) *Metrics {
	buckets := []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	m := &Metrics{
		engines: engines,
		queued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "machine_iac_runs_queued", Help: "Queued runs.",
		}, seriesLabels),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "machine_iac_runs_running", Help: "Running runs. Each Machine of a batch counts.",
		}, seriesLabels),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "machine_iac_run_queue_seconds", Help: "Seconds from the submission of a run to its start.", Buckets: buckets,
		}, seriesLabels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "machine_iac_run_duration_seconds", Buckets: buckets,
			Help: "Duration of a run in seconds. result is success or failure.",
		}, []string{"engine", "operation", "result"}),
		picks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machine_iac_run_picks_total", Help: "Started runs by why they were picked: turn, reserved, aged or lifted.",
		}, []string{"engine", "operation", "pick"}),
	}
	for _, engine := range engines {
		for _, operation := range precedence {
			m.queued.WithLabelValues(engine, string(operation))
			m.running.WithLabelValues(engine, string(operation))
			m.waits.WithLabelValues(engine, string(operation))
			// A first failure counts as an increase only if the series was zero before.
			m.duration.WithLabelValues(engine, string(operation), resultSuccess)
			m.duration.WithLabelValues(engine, string(operation), resultFailure)
		}
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, collector := range m.all() {
		collector.Describe(descriptions)
	}
	descriptions <- oldestQueued
	descriptions <- throttledSeconds
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	for _, collector := range m.all() {
		collector.Collect(metrics)
	}
	m.collectWaits(metrics)
	if m.throttled == nil {
		return
	}
	for credential, lasted := range m.throttled() {
		metrics <- prometheus.MustNewConstMetric(throttledSeconds, prometheus.GaugeValue, lasted.Seconds(), credential)
	}
}

// collectWaits exports the wait of the oldest run of each kind.
func (m *Metrics) collectWaits(metrics chan<- prometheus.Metric) {
	longest := map[kindOfRun]time.Duration{}
	if m.longestWaits != nil {
		longest = m.longestWaits()
	}
	for _, engine := range m.engines {
		for _, operation := range precedence {
			longest[kindOfRun{engine, operation}] += 0
		}
	}
	for kind, waited := range longest {
		metrics <- prometheus.MustNewConstMetric(oldestQueued, prometheus.GaugeValue, waited.Seconds(), kind.engine,
			string(kind.operation))
	}
}

// longestWaits returns the wait of the oldest waiting run of each kind.
func (p *Pool) longestWaits() map[kindOfRun]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, longest := p.options.Clock.Now(), map[kindOfRun]time.Duration{}
	for _, r := range p.runs {
		if kind := (kindOfRun{r.Engine, r.Operation}); r.status.Phase == Queued {
			longest[kind] = max(longest[kind], now.Sub(r.status.QueuedAt))
		}
	}
	return longest
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.queued, m.running, m.waits, m.duration, m.picks}
}

// waiting counts a run that starts or stops waiting.
func (m *Metrics) waiting(r *run, more float64) {
	m.queued.WithLabelValues(r.Engine, string(r.Operation)).Add(more)
}

// started counts a run that got a worker, and the rule that picked it.
func (m *Metrics) started(r *run, pick string) {
	m.picks.WithLabelValues(r.Engine, string(r.Operation), pick).Inc()
	m.waiting(r, -1)
	m.running.WithLabelValues(r.Engine, string(r.Operation)).Inc()
	m.waits.WithLabelValues(r.Engine, string(r.Operation)).Observe(r.status.StartedAt.Sub(r.status.QueuedAt).Seconds())
}

// leftBatch counts a run that leaves its batch and waits again; it has not ended.
func (m *Metrics) leftBatch(r *run) {
	m.running.WithLabelValues(r.Engine, string(r.Operation)).Dec()
}

func (m *Metrics) ended(r *run, now time.Time, err error) {
	result := resultSuccess
	if err != nil {
		result = resultFailure
	}
	m.running.WithLabelValues(r.Engine, string(r.Operation)).Dec()
	m.duration.WithLabelValues(r.Engine, string(r.Operation), result).Observe(now.Sub(r.status.StartedAt).Seconds())
}
