package machineset

import (
	"context"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// collectTimeout bounds one scrape: a cache that has not synced yet blocks its readers.
const collectTimeout = 5 * time.Second

var (
	itemsSeries = prometheus.NewDesc("mapi_machineset_items", "MachineSets.", nil, nil)
	// Every collector of the Machine API has this series with a kind of its own, so name, help and label must be
	// alike everywhere.
	upSeries = prometheus.NewDesc("mapi_mao_collector_up",
		"Whether the objects behind a Machine API metric could be listed.", nil,
		prometheus.Labels{"kind": "mapi_machineset_items"})
	createdSeries = prometheus.NewDesc("mapi_machineset_created_timestamp_seconds",
		"Creation time of a MachineSet, in seconds since 1970.", []string{"name", "namespace", "api_version"}, nil)
	statusReplicasSeries = prometheus.NewDesc("mapi_machine_set_status_replicas",
		"Machines of the MachineSet.", []string{"name", "namespace"}, nil)
	statusReadySeries = prometheus.NewDesc("mapi_machine_set_status_replicas_ready",
		"Machines of the MachineSet whose Node is Ready.", []string{"name", "namespace"}, nil)
	statusAvailableSeries = prometheus.NewDesc("mapi_machine_set_status_replicas_available",
		"Machines of the MachineSet whose Node has been Ready for long enough.", []string{"name", "namespace"}, nil)
	frozenSeries = prometheus.NewDesc("machine_iac_machineset_frozen",
		"1 while the MachineSet creates no Machines because there are too many, else 0.",
		[]string{"name", "namespace"}, nil)
)

// Collector exposes MachineSets as metrics. Each scrape reads the current MachineSets, so the
// metrics of a deleted one disappear with it. It implements prometheus.Collector.
type Collector struct {
	list func() (*machinev1beta1.MachineSetList, error)
}

// NewCollector returns a Collector that lists with reader, which should be a cache, until ctx ends.
func NewCollector(ctx context.Context, reader client.Reader) *Collector {
	return &Collector{list: func() (*machinev1beta1.MachineSetList, error) {
		limited, cancel := context.WithTimeout(ctx, collectTimeout)
		defer cancel()
		sets := &machinev1beta1.MachineSetList{}
		err := reader.List(limited, sets, client.UnsafeDisableDeepCopy)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot list MachineSets for metrics")
		}
		return sets, err
	}}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		itemsSeries, upSeries, createdSeries, statusReplicasSeries, statusReadySeries, statusAvailableSeries,
		frozenSeries,
	} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector. When the MachineSets cannot be listed,
// mapi_mao_collector_up is 0 and nothing else is exposed.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	sets, err := c.list()
	if err != nil {
		gauge(upSeries, 0)
		return
	}
	gauge(upSeries, 1)
	gauge(itemsSeries, float64(len(sets.Items)))
	for i := range sets.Items {
		set := &sets.Items[i]
		// A cache leaves the object's own apiVersion empty.
		gauge(createdSeries, float64(set.CreationTimestamp.Unix()), set.Name, set.Namespace,
			machinev1beta1.GroupVersion.String())
		gauge(statusReplicasSeries, float64(set.Status.Replicas), set.Name, set.Namespace)
		gauge(statusReadySeries, float64(set.Status.ReadyReplicas), set.Name, set.Namespace)
		gauge(statusAvailableSeries, float64(set.Status.AvailableReplicas), set.Name, set.Namespace)
		frozen := 0.0
		if machineapi.FindCondition(set.Status.Conditions, v1beta1.ConditionFrozen) != nil {
			frozen = 1
		}
		gauge(frozenSeries, frozen, set.Name, set.Namespace)
	}
}
