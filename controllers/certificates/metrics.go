package certificates

import (
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
)

// Reasons why a request is not approved.
const (
	reasonMalformed = "malformed"
	reasonSubject   = "subject"
	reasonUsages    = "usages"
	reasonNames     = "names"
	reasonRequester = "requester"
	reasonNode      = "node"
	reasonMachine   = "machine"
	reasonLate      = "late"
	reasonRepeated  = "repeated"
	reasonTooMany   = "too_many"
)

var (
	kinds = map[string]string{
		certificatesv1.KubeAPIServerClientKubeletSignerName: "client",
		certificatesv1.KubeletServingSignerName:             "serving",
	}
	reasons = []string{reasonMalformed, reasonSubject, reasonUsages, reasonNames, reasonRequester, reasonNode,
		reasonMachine, reasonLate, reasonRepeated, reasonTooMany}
)

// Metrics are the series of the certificates controller.
type Metrics struct {
	pending  prometheus.Gauge
	approved *prometheus.CounterVec
	refused  *prometheus.CounterVec
}

// NewMetrics returns new metrics. Register their Collectors.
func NewMetrics() *Metrics {
	m := &Metrics{
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "machine_iac_certificate_requests_pending",
			Help: "Certificate requests of kubelets that are neither approved nor denied.",
		}),
		approved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machine_iac_certificate_requests_approved_total",
			Help: "Approved certificate requests of kubelets. kind is client or serving.",
		}, []string{"kind"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machine_iac_certificate_requests_refused_total",
			Help: "How often a certificate request of a kubelet was checked and left pending. kind is client or serving.",
		}, []string{"kind", "reason"}),
	}
	for _, kind := range kinds {
		m.approved.WithLabelValues(kind)
		for _, reason := range reasons {
			m.refused.WithLabelValues(kind, reason)
		}
	}
	return m
}

// Collectors returns what to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.pending, m.approved, m.refused}
}
