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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// maxReported bounds how many instances are reported.
const maxReported = 500

// Inventory finds instances that belong to no Machine and no state, if a module can list the
// cluster's instances. It is a manager.Runnable.
type Inventory struct {
	*Orphans
	// Every is the interval between inventories.
	Every time.Duration
	// last is this process's last report. The ConfigMap is not trusted, because others can write
	// it.
	last lifecycle.InventoryReport
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (i *Inventory) NeedLeaderElection() bool { return true }

// Start runs inventories until ctx ends. The first one is delayed, because a starting manager is
// busy.
func (i *Inventory) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(min(i.Every, interval)):
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := i.Check(ctx); err != nil && ctx.Err() == nil {
			i.Logger.Error(err, "Cannot list orphaned instances")
		}
	}, i.Every)
	return nil
}

// Check lists the instances once and reports the orphans.
func (i *Inventory) Check(ctx context.Context) error {
	machines, heads, err := i.read(ctx)
	if err != nil {
		return err
	}
	owners := &lifecycle.Owners{}
	owners.Add(machines, heads)
	report := &lifecycle.InventoryReport{Checked: i.Clock.Now().UTC(), Instances: []lifecycle.OrphanedInstance{}}
	listed := map[string]bool{}
	for _, group := range groupsOf(machines, heads) {
		found, known, err := i.list(ctx, group)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			report.Problems = append(report.Problems, fmt.Sprintf("%s: %s", group.name(), events.Shortened(err.Error())))
		}
		if known && err == nil {
			listed[group.name()] = true
		}
		report.Instances = append(report.Instances, found...)
	}
	kept, err := i.unlisted(ctx, listed)
	if err != nil {
		return err
	}
	report.Instances = append(report.Instances, kept...)
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
		if err := i.Client.List(ctx, page, client.InNamespace(i.Namespace), client.Limit(livePage),
			client.Continue(next)); err != nil {
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

// group holds the Machines whose instances share a place and module. Listing with the inputs of any
// one covers them all.
type group struct {
	module, place, cluster string
	machines               []machinev1beta1.Machine
}

func (g group) name() string { return strings.TrimSpace(short(g.module) + " " + g.place) }

// short returns a module's name.
func short(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	return name
}

// groupsOf groups the Machines that have an instance in their state and are not being deleted.
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
		one := group{module: read.Module, place: read.Place.String(),
			cluster: machine.Labels[machinev1beta1.MachineClusterIDLabel]}
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
	slices.SortFunc(sorted,
		func(a, b group) int { return cmp.Compare(a.module+a.place+a.cluster, b.module+b.place+b.cluster) })
	return sorted
}

// maxTries bounds the Machines tried per group: the inputs of some may no longer be plannable.
const maxTries = 3

// unlisted returns the last report's instances in places that were not listed now, because no
// Machine is left there or listing failed. The ConfigMap counts only if the operator signed it.
func (i *Inventory) unlisted(ctx context.Context, listed map[string]bool) ([]lifecycle.OrphanedInstance, error) {
	kept := &corev1.ConfigMap{}
	err := i.Client.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: lifecycle.InventoryConfigMap}, kept)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	text := kept.Data[lifecycle.InventoryKey]
	if i.Installation == nil || !i.Installation.Signed(kept.Data[installation.CodeKey], lifecycle.InventoryConfigMap,
		i.Namespace, text) {
		return nil, nil
	}
	var report lifecycle.InventoryReport
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s: %w; delete it, and the next inventory writes it again",
			lifecycle.InventoryConfigMap, err)
	}
	var found []lifecycle.OrphanedInstance
	for _, one := range report.Instances {
		if listed[group{module: one.Module, place: one.Place}.name()] {
			continue
		}
		if one.LastListed.IsZero() {
			one.LastListed = report.Checked
		}
		found = append(found, one)
	}
	return found, nil
}

// list lists a group's instances. known is false if its module cannot.
func (i *Inventory) list(ctx context.Context, g group) (found []lifecycle.OrphanedInstance, known bool, err error) {
	for n := range g.machines[:min(maxTries, len(g.machines))] {
		var listed []lifecycle.ListedInstance
		listed, known, err = i.Actuator.ListInstances(ctx, &g.machines[n])
		if err != nil {
			continue
		}
		for _, one := range listed {
			found = append(found, lifecycle.OrphanedInstance{ListedInstance: one, Module: g.module, Place: g.place,
				ListedBy: g.machines[n].Name})
		}
		break
	}
	return found, known, err
}

// publish reports the instances without an owner: in a ConfigMap, in a metric, and the first time
// also in an event and the log.
func (i *Inventory) publish(ctx context.Context, report *lifecycle.InventoryReport, owners *lifecycle.Owners) error {
	last := i.last
	i.compare(report, &last, owners)
	kept, err := i.write(ctx, report)
	if err != nil {
		return fmt.Errorf("writing the inventory: %w", err)
	}
	i.last = *report
	i.report(kept, report, &last)
	var problems []error
	for _, problem := range report.Problems {
		problems = append(problems, errors.New(problem))
	}
	return errors.Join(problems...)
}

// write overwrites the ConfigMap with a report.
func (i *Inventory) write(ctx context.Context, report *lifecycle.InventoryReport) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(report)
	if err != nil {
		return nil, err
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: lifecycle.InventoryConfigMap}}
	_, err = controllerutil.CreateOrUpdate(ctx, i.Client, kept, func() error {
		kept.Data = map[string]string{lifecycle.InventoryKey: string(text)}
		if i.Installation != nil {
			kept.Data[installation.CodeKey] = i.Installation.Sign(lifecycle.InventoryConfigMap, i.Namespace, string(text))
		}
		return nil
	})
	return kept, err
}

// compare keeps the instances without an owner, once each, with the time when this process first
// found them.
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
	slices.SortFunc(report.Instances,
		func(a, b lifecycle.OrphanedInstance) int { return cmp.Compare(a.ProviderID, b.ProviderID) })
	for n := range report.Instances {
		one := &report.Instances[n]
		one.FirstSeen = report.Checked
		if first := seen[one.ProviderID]; !first.IsZero() && !first.After(report.Checked) {
			one.FirstSeen = first
		}
		since := one.Since()
		if since.IsZero() {
			since = one.FirstSeen
		}
		known := one.Orphaned && !one.LastListed.IsZero()
		one.Orphaned = known || !report.Checked.Before(since.Add(i.GracePeriod))
	}
	if left := len(report.Instances) - maxReported; left > 0 {
		report.Instances = report.Instances[:maxReported]
		report.Problems = append(report.Problems, fmt.Sprintf("%d more orphaned instances are not listed", left))
	}
}

// report counts the orphans and sends events about new ones.
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
			"providerID", one.ProviderID, "name", one.Name, "machine-uid", one.MachineUID, "installation", one.Installation,
			"created", one.Created, "module", one.Module)
		if !known[one.ProviderID] {
			events.Warning(about, "OrphanedInstance", "CheckInstances",
				fmt.Sprintf("instance %s (%s) of this cluster belongs to no Machine and no state: "+
					"run 'kubectl machine orphans' for details", one.Name, one.ProviderID)).Send(i.Recorder)
		}
	}
	i.instances.Set(float64(count))
}
