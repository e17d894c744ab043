package terraform

import (
	"context"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// orphanInterval is how often states are compared with Machines.
const orphanInterval = 10 * time.Minute

// Orphans reports states whose Machine is gone, for example because its finalizer was removed by hand. It never deletes one: there
// may be an instance behind it that nobody else knows of. It is a manager.Runnable and a prometheus.Collector.
type Orphans struct {
	actuator  *Actuator
	namespace string
	count     prometheus.Gauge
}

// NewOrphans makes a report about the states in a namespace.
func NewOrphans(a *Actuator, namespace string) *Orphans {
	return &Orphans{actuator: a, namespace: namespace, count: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "machine_iac_orphaned_states", Help: "States in Secrets whose Machine does not exist; each may stand for an instance that is paid for.",
	})}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (o *Orphans) NeedLeaderElection() bool { return true }

// Describe implements prometheus.Collector.
func (o *Orphans) Describe(descriptions chan<- *prometheus.Desc) { o.count.Describe(descriptions) }

// Collect implements prometheus.Collector.
func (o *Orphans) Collect(metrics chan<- prometheus.Metric) { o.count.Collect(metrics) }

// Start reports until ctx ends.
func (o *Orphans) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		orphans, err := o.find(ctx)
		if err != nil {
			if ctx.Err() == nil {
				o.actuator.logger.Error(err, "Looking for states without a Machine")
			}
			return
		}
		o.count.Set(float64(len(orphans)))
		for _, head := range orphans {
			o.actuator.logger.Info("A state has no Machine; see docs/troubleshooting.md before you delete it",
				"state", head.Key.String(), "resources", head.Managed)
		}
	}, orphanInterval)
	return nil
}

// find answers the states without a Machine. States are listed first: a Machine that is made meanwhile has none among them.
func (o *Orphans) find(ctx context.Context) ([]state.Head, error) {
	heads, err := o.actuator.store.List(ctx, o.namespace)
	if err != nil {
		return nil, err
	}
	machines := &machinev1beta1.MachineList{}
	if err := o.actuator.client.List(ctx, machines, client.InNamespace(o.namespace)); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	known := map[state.Key]bool{}
	for i := range machines.Items {
		known[state.KeyFor(machines.Items[i].Namespace, machines.Items[i].UID)] = true
	}
	var orphans []state.Head
	for _, head := range heads {
		if !known[head.Key] {
			orphans = append(orphans, head)
		}
	}
	return orphans, nil
}
