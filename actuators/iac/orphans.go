package iac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// orphanCheckInterval is how often states are compared with Machines. A destroy whose Machine is gone waits for that at most.
const orphanCheckInterval = 2 * time.Minute

// Orphans reports states whose Machine is gone, for example because its finalizer was removed by hand. It never deletes one: there
// may be an instance that no other state knows. As it reads every state, it also makes sure that the modules that states
// need are stored, and no others. It is a manager.Runnable and a prometheus.Collector.
type Orphans struct {
	actuator  *Actuator
	namespace string
	count     prometheus.Gauge
	held      prometheus.Gauge
	intents   prometheus.Gauge
}

// NewOrphans returns Orphans that reports on the states in a namespace.
func NewOrphans(a *Actuator, namespace string) *Orphans {
	return &Orphans{actuator: a, namespace: namespace, count: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "machine_iac_orphaned_states", Help: "States in Secrets whose Machine does not exist; each may stand for an instance that is paid for.",
	}), held: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "machine_iac_machines_module_held", Help: "Machines whose instance was made with another content of a module than the one that is loaded.",
	}), intents: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "machine_iac_oldest_intent_seconds", Help: "Age of the intent of a run that has not settled for the longest time; zero when there is none.",
	})}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (o *Orphans) NeedLeaderElection() bool { return true }

// Describe implements prometheus.Collector.
func (o *Orphans) Describe(descriptions chan<- *prometheus.Desc) {
	o.count.Describe(descriptions)
	o.held.Describe(descriptions)
	o.intents.Describe(descriptions)
}

// Collect implements prometheus.Collector.
func (o *Orphans) Collect(metrics chan<- prometheus.Metric) {
	o.count.Collect(metrics)
	o.held.Collect(metrics)
	o.intents.Collect(metrics)
}

// Start reports until ctx ends.
func (o *Orphans) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := o.check(ctx); err != nil && ctx.Err() == nil {
			o.actuator.logger.Error(err, "Checking the states")
		}
	}, orphanCheckInterval)
	return nil
}

func (o *Orphans) check(ctx context.Context) error {
	heads, err := o.actuator.store.List(ctx, o.namespace)
	if err != nil {
		return err
	}
	return errors.Join(o.report(ctx, heads), o.tidyModules(ctx, heads))
}

func (o *Orphans) report(ctx context.Context, heads []state.Head) error {
	orphans, err := o.find(ctx, heads)
	if err != nil {
		return err
	}
	kept, err := o.kept(ctx)
	if err != nil {
		return err
	}
	o.count.Set(float64(len(orphans) + len(kept)))
	o.intents.Set(o.oldestIntent(heads))
	for _, one := range kept {
		o.actuator.logger.Info("A state that an engine could not save names resources that no other state knows; see docs/troubleshooting.md",
			"secret", one.Name, "machine", one.Machine, "resources", resourceNames(one.Missing), "reason", one.Reason)
	}
	for _, head := range orphans {
		if o.actuator.finishDestroy(head) {
			continue
		}
		if err := o.actuator.unlock(ctx, head); err != nil {
			o.actuator.logger.Error(err, "Giving back the lock of a run that is dead", "state", head.Key.String())
		}
		o.actuator.logger.Info("A state has no Machine; see docs/troubleshooting.md before you delete it",
			"state", head.Key.String(), "resources", head.Managed)
	}
	return nil
}

// kept returns the states that could not be saved and name what no other state knows. Those that name nothing else any more are dropped.
func (o *Orphans) kept(ctx context.Context) ([]state.Orphan, error) {
	all, err := o.actuator.store.Orphans(ctx, o.namespace)
	if err != nil {
		return nil, err
	}
	nameOf := func(one state.Orphan) types.NamespacedName {
		return types.NamespacedName{Namespace: one.Namespace, Name: one.Name}
	}
	for _, one := range all {
		o.actuator.kept.add(one.MachineUID, nameOf(one))
	}
	for _, one := range all {
		// Without a state of its Machine it may be all that is known.
		if stored, err := o.actuator.store.Get(ctx, one.Key); err == nil && stored.Raw != nil {
			o.actuator.dropKnown(ctx, one.MachineUID, stored.Raw)
		}
	}
	return slices.DeleteFunc(all, func(one state.Orphan) bool {
		return !slices.Contains(o.actuator.kept.of(one.MachineUID), nameOf(one))
	}), nil
}

// finishDestroy has a destroy finished that was begun before its Machine's finalizer was taken away.
func (a *Actuator) finishDestroy(head state.Head) bool {
	read, err := lifecycle.ReadRecord(head.Meta)
	uid := types.UID(head.Labels[state.LabelMachineUID])
	if err != nil || uid == "" || read.Intent == nil || read.Intent.Operation != runs.Destroy {
		return false
	}
	machine := &machinev1beta1.Machine{}
	machine.Namespace, machine.Name, machine.UID = head.Key.Namespace, head.Meta[strings.TrimPrefix(state.AnnotationMachine, state.Prefix)], uid
	_, err = a.pool.Submit(runs.Request{
		Machine: client.ObjectKeyFromObject(machine), UID: uid, Group: head.Key.Namespace, Operation: runs.Destroy, Engine: noEngine,
		Task: newTask(a, machine, runs.Destroy),
	})
	if err != nil {
		a.logger.Error(err, "Finishing the destroy of an instance whose Machine is gone", "state", head.Key.String())
	}
	return true
}

// unlock gives back the lock that a dead manager has left on a state whose Machine is gone: no run comes that would take it over. What was
// intended stays recorded.
func (a *Actuator) unlock(ctx context.Context, head state.Head) error {
	if head.Lock == nil || head.Lock.Owner == a.owner {
		return nil
	}
	session, err := a.acquire(ctx, head.Key, state.AcquireOptions{Lock: state.Lock{Owner: a.owner, Run: string(uuid.NewUUID()), Operation: "unlock"}})
	if _, waiting := actuators.AsRequeueAfter(err); waiting {
		return nil // its engines may still run
	}
	if err != nil {
		return err
	}
	return session.Release(ctx, nil)
}

// oldestIntent returns the age in seconds of the intent that has not settled for the longest, zero when there is none.
func (o *Orphans) oldestIntent(heads []state.Head) float64 {
	var age time.Duration
	for _, head := range heads {
		if read, err := lifecycle.ReadRecord(head.Meta); err == nil && read.Intent != nil {
			age = max(age, o.actuator.clock.Since(read.Intent.Since))
		}
	}
	return age.Seconds()
}

// tidyModules stores the modules that the states need, those of states from before modules were stored too, and removes others.
func (o *Orphans) tidyModules(ctx context.Context, heads []state.Head) error {
	a := o.actuator
	needed, current, held := map[string]bool{}, map[string]*module.Module{}, 0
	for _, loaded := range a.catalog.Modules() {
		current[loaded.Digest()] = loaded
	}
	for _, head := range heads {
		digest := store.DigestOf(lifecycle.ModuleIn(head.Meta))
		needed[digest] = true
		if digest != "" && current[digest] == nil && head.Managed > 0 {
			held++
		}
	}
	o.held.Set(float64(held))
	removed, err := a.modules.Tidy(ctx, o.namespace, func(digest string) bool { return needed[digest] || current[digest] != nil })
	for _, digest := range removed {
		a.logger.Info("No state needs a stored module any more; it is removed", "digest", digest)
	}
	for digest, loaded := range current {
		if needed[digest] {
			err = errors.Join(err, a.modules.Keep(ctx, o.namespace, loaded))
		}
	}
	return err
}

// find returns the states without a Machine. States were listed first: a Machine that is made meanwhile has none among them.
func (o *Orphans) find(ctx context.Context, heads []state.Head) ([]state.Head, error) {
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
