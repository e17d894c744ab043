package machine

import (
	"context"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// collectTimeout bounds one scrape: a cache that has not synced yet blocks its readers.
const collectTimeout = 5 * time.Second

var (
	items = prometheus.NewDesc("mapi_machine_items", "Machines.", nil, nil)
	// Every collector of the Machine API has this series with a kind of its own, so name, help and label must be
	// alike everywhere.
	collectorUp = prometheus.NewDesc("mapi_mao_collector_up",
		"Whether the objects behind a Machine API metric could be listed.", nil,
		prometheus.Labels{"kind": "mapi_machine_items"})
	created = prometheus.NewDesc("mapi_machine_created_timestamp_seconds",
		"Creation time of a Machine that has a phase, in seconds since 1970.",
		[]string{"name", "namespace", "spec_provider_id", "node", "api_version", "phase"}, nil)
)

// Metrics are the series of the machine controller.
type Metrics struct {
	transitions *prometheus.HistogramVec
}

// NewMetrics returns new metrics. Register their Collectors.
func NewMetrics() *Metrics {
	return &Metrics{
		transitions: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mapi_machine_phase_transition_seconds",
			Help:    "Seconds from a Machine's creation to the phase.",
			Buckets: []float64{5, 10, 20, 30, 60, 90, 120, 180, 240, 300, 360, 480, 600},
		}, []string{"phase"}),
	}
}

// Collectors returns what to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.transitions}
}

func (m *Metrics) phaseChanged(before, after *machinev1beta1.Machine, now time.Time) {
	phase := machineapi.Phase(after)
	if phase == machineapi.Phase(before) || phase == machinev1beta1.PhaseDeleting {
		return
	}
	m.transitions.WithLabelValues(phase).Observe(now.Sub(after.CreationTimestamp.Time).Seconds())
}

// Collector exposes Machines as metrics. Each scrape reads the current Machines, so the metrics of
// a deleted one disappear with it. It implements prometheus.Collector.
type Collector struct {
	list func() (*machinev1beta1.MachineList, error)
}

// NewCollector returns a Collector that lists with reader, which should be a cache, until ctx ends.
func NewCollector(ctx context.Context, reader client.Reader) *Collector {
	return &Collector{list: func() (*machinev1beta1.MachineList, error) {
		limited, cancel := context.WithTimeout(ctx, collectTimeout)
		defer cancel()
		machines := &machinev1beta1.MachineList{}
		err := reader.List(limited, machines, client.UnsafeDisableDeepCopy)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot list Machines for metrics")
		}
		return machines, err
	}}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{items, collectorUp, created} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector. When the Machines cannot be listed,
// mapi_mao_collector_up is 0 and nothing else is exposed.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	machines, err := c.list()
	if err != nil {
		gauge(collectorUp, 0)
		return
	}
	gauge(collectorUp, 1)
	gauge(items, float64(len(machines.Items)))
	for i := range machines.Items {
		machine := &machines.Items[i]
		phase := machineapi.Phase(machine)
		if phase == "" { // not reconciled yet
			continue
		}
		node := ""
		if machine.Status.NodeRef != nil {
			node = machine.Status.NodeRef.Name
		}
		// A cache leaves the object's own apiVersion empty.
		gauge(created, float64(machine.CreationTimestamp.Unix()), machine.Name, machine.Namespace,
			ptr.Deref(machine.Spec.ProviderID, ""), node, machinev1beta1.GroupVersion.String(), phase)
	}
}
