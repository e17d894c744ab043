package orphans

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// maxReported bounds how many instances are reported.
const maxReported = 500

// Inventory finds instances that belong to no Machine and no state, where a module can list those of the cluster. It is a manager.Runnable.
type Inventory struct {
	*Orphans
	// Every is how often it lists.
	Every time.Duration
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (i *Inventory) NeedLeaderElection() bool { return true }

// Start lists until ctx ends, for the first time after a while: a manager that has just started has other things to do.
func (i *Inventory) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(min(i.Every, interval)):
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := i.Check(ctx); err != nil && ctx.Err() == nil {
			i.Logger.Error(err, "Looking for instances that belong to nobody")
		}
	}, i.Every)
	return nil
}

// Check lists the instances once, and reports those that belong to nobody.
func (i *Inventory) Check(ctx context.Context) error {
	machines, heads, err := i.read(ctx)
	if err != nil {
		return err
	}
	owners := &lifecycle.Owners{}
	owners.Add(machines, heads)
	report := &lifecycle.InventoryReport{Checked: i.Clock.Now().UTC(), Instances: []lifecycle.OrphanedInstance{}}
	for _, group := range groupsOf(machines, heads) {
		found, err := i.list(ctx, group)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			report.Problems = append(report.Problems, fmt.Sprintf("%s: %s", group.name(), events.Shortened(err.Error())))
		}
		report.Instances = append(report.Instances, found...)
	}
	if machines, heads, err = i.read(ctx); err != nil {
		return err
	}
	owners.Add(machines, heads)
	return errors.Join(i.publish(ctx, report, owners), i.destroyInstances(ctx, report, machines))
}

func (i *Inventory) read(ctx context.Context) ([]machinev1beta1.Machine, []state.Head, error) {
	heads, err := i.Store.List(ctx, i.Namespace)
	if err != nil {
		return nil, nil, err
	}
	var machines []machinev1beta1.Machine
	for next := ""; ; {
		page := &machinev1beta1.MachineList{}
		if err := i.Client.List(ctx, page, client.InNamespace(i.Namespace), client.Limit(livePage), client.Continue(next)); err != nil {
			return nil, nil, fmt.Errorf("listing Machines: %w", err)
		}
		for n := range page.Items {
			page.Items[n].ManagedFields = nil // nearly half of a Machine
		}
		machines = append(machines, page.Items...)
		if next = page.Continue; next == "" {
			return machines, heads, nil
		}
	}
}

// group are Machines whose instances are in one place, made by one module: an inventory with the inputs of any lists those of all.
type group struct {
	module, place, cluster string
	machines               []machinev1beta1.Machine
}

func (g group) name() string { return strings.TrimSpace(short(g.module) + " " + g.place) }

// short is a module's name.
func short(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	return name
}

// groupsOf groups the Machines that have a state with an instance, and are not being deleted.
func groupsOf(machines []machinev1beta1.Machine, heads []state.Head) []group {
	byKey := map[state.Key]*state.Head{}
	for n := range heads {
		byKey[heads[n].Key] = &heads[n]
	}
	groups := map[string]*group{}
	for _, machine := range machines {
		head := byKey[state.KeyFor(machine.Namespace, machine.UID)]
		if head == nil || head.Managed == 0 || !machine.DeletionTimestamp.IsZero() {
			continue
		}
		read, err := record.Read(head.Meta)
		if err != nil || store.DigestOf(read.Module) == "" {
			continue
		}
		one := group{module: read.Module, place: read.Place.String(), cluster: machine.Labels[machinev1beta1.MachineClusterIDLabel]}
		key := one.module + "\x00" + one.place + "\x00" + one.cluster
		if groups[key] == nil {
			groups[key] = &one
		}
		groups[key].machines = append(groups[key].machines, machine)
	}
	var sorted []group
	for _, one := range groups {
		sorted = append(sorted, *one)
	}
	slices.SortFunc(sorted, func(a, b group) int { return cmp.Compare(a.module+a.place+a.cluster, b.module+b.place+b.cluster) })
	return sorted
}

// maxTries is how many Machines of a group are tried: one may have inputs that cannot be planned any more.
const maxTries = 3

// list lists the instances of a group.
func (i *Inventory) list(ctx context.Context, g group) ([]lifecycle.OrphanedInstance, error) {
	var failed error
	for n := range g.machines[:min(maxTries, len(g.machines))] {
		listed, known, err := i.Actuator.ListInstances(ctx, &g.machines[n])
		if err != nil {
			failed = err
			continue
		}
		if !known {
			return nil, nil
		}
		var found []lifecycle.OrphanedInstance
		for _, one := range listed {
			found = append(found, lifecycle.OrphanedInstance{ListedInstance: one, Module: g.module, Place: g.place, ListedBy: g.machines[n].Name})
		}
		return found, nil
	}
	return nil, failed
}

// publish reports the instances that have no owner: in a ConfigMap, in a metric, and the first time in an event and in the log.
func (i *Inventory) publish(ctx context.Context, report *lifecycle.InventoryReport, owners *lifecycle.Owners) error {
	kept := &corev1.ConfigMap{}
	err := i.Client.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: lifecycle.InventoryConfigMap}, kept)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the last inventory: %w", err)
	}
	missing := apierrors.IsNotFound(err)
	var last lifecycle.InventoryReport
	if text := kept.Data[lifecycle.InventoryKey]; text != "" && json.Unmarshal([]byte(text), &last) != nil {
		last = lifecycle.InventoryReport{} // it was edited, and is written anew
	}
	i.compare(report, &last, owners)
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("writing the inventory: %w", err)
	}
	kept.Namespace, kept.Name, kept.Data = i.Namespace, lifecycle.InventoryConfigMap, map[string]string{lifecycle.InventoryKey: string(text)}
	if missing {
		kept.ObjectMeta = metav1.ObjectMeta{Namespace: i.Namespace, Name: lifecycle.InventoryConfigMap}
		err = i.Client.Create(ctx, kept)
	} else {
		err = i.Client.Update(ctx, kept)
	}
	if err != nil {
		return fmt.Errorf("writing the inventory: %w", err)
	}
	i.report(kept, report, &last)
	var problems []error
	for _, problem := range report.Problems {
		problems = append(problems, errors.New(problem))
	}
	return errors.Join(problems...)
}

// compare leaves the instances that have no owner, each once, with what the last inventory knows of them.
func (i *Inventory) compare(report, last *lifecycle.InventoryReport, owners *lifecycle.Owners) {
	seen := map[string]time.Time{}
	for _, one := range last.Instances {
		seen[one.ProviderID] = one.FirstSeen
	}
	listed := map[string]bool{}
	report.Instances = slices.DeleteFunc(report.Instances, func(one lifecycle.OrphanedInstance) bool {
		twice := listed[one.ProviderID]
		listed[one.ProviderID] = true
		return twice || one.ProviderID == "" || owners.Own(one.ListedInstance)
	})
	slices.SortFunc(report.Instances, func(a, b lifecycle.OrphanedInstance) int { return cmp.Compare(a.ProviderID, b.ProviderID) })
	for n := range report.Instances {
		one := &report.Instances[n]
		one.FirstSeen = report.Checked
		if first := seen[one.ProviderID]; !first.IsZero() {
			one.FirstSeen = first
		}
		since := one.Since()
		if since.IsZero() {
			since = one.FirstSeen
		}
		one.Orphaned = !report.Checked.Before(since.Add(i.GracePeriod))
	}
	if left := len(report.Instances) - maxReported; left > 0 {
		report.Instances = report.Instances[:maxReported]
		report.Problems = append(report.Problems, fmt.Sprintf("%d further instances that belong to nobody are not reported", left))
	}
}

// report counts what was found, and sends what is new.
func (i *Inventory) report(about *corev1.ConfigMap, report, last *lifecycle.InventoryReport) {
	known, count := map[string]bool{}, 0
	for _, one := range last.Instances {
		known[one.ProviderID] = one.Orphaned
	}
	for _, one := range report.Instances {
		if !one.Orphaned {
			continue
		}
		count++
		i.Logger.Info("An instance of the cluster belongs to no Machine and no state; see docs/troubleshooting.md",
			"providerID", one.ProviderID, "name", one.Name, "machine-uid", one.MachineUID, "created", one.Created, "module", one.Module)
		if !known[one.ProviderID] {
			events.Warning(about, "OrphanedInstance", "CheckInstances", fmt.Sprintf("the instance %s (%s) of this cluster belongs to no Machine and no state: "+
				"'kubectl machine orphans' shows it", one.Name, one.ProviderID)).Send(i.Recorder)
		}
	}
	i.instances.Set(float64(count))
}
