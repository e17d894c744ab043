package iac

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/orphans"
	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// inventory returns what the last inventory has found.
func (b *bench) inventory() lifecycle.InventoryReport {
	b.t.Helper()
	kept := &corev1.ConfigMap{}
	if err := b.client.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: lifecycle.InventoryConfigMap}, kept); err != nil {
		b.t.Fatal(err)
	}
	var report lifecycle.InventoryReport
	if err := json.Unmarshal([]byte(kept.Data[lifecycle.InventoryKey]), &report); err != nil {
		b.t.Fatal(err)
	}
	return report
}

// foreignNode makes a Node by other means, as one of a cluster.
func (b *bench) foreignNode(name, cluster string, uid, installation types.UID) string {
	b.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"machine-iac.io/cluster-id": cluster}}}
	if uid != "" {
		node.Labels["machine-iac.io/machine-uid"] = string(uid)
	}
	if installation != "" {
		node.Labels["machine-iac.io/installation"] = string(installation)
	}
	node.Spec.ProviderID = "kubemark://" + name
	if err := plane.Create(b.t.Context(), node); err != nil {
		b.t.Fatal(err)
	}
	return node.Spec.ProviderID
}

// Instances of Machines, of runs in progress, of states without a Machine and of other clusters
// belong to somebody.
func TestAnInstanceThatBelongsToNobodyIsReported(t *testing.T) {
	b := newBench(t)
	cluster := b.namespace // the Nodes of other tests are there too
	machine := func() *machinev1beta1.Machine {
		t.Helper()
		m := b.machine()
		m.Labels[machinev1beta1.MachineClusterIDLabel] = cluster
		b.bring(m)
		if err := b.sync(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	settled, lost, gone := machine(), machine(), machine()
	lost.Spec.ProviderID = nil // as it was while its instance was made
	if err := b.sync(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	b.lose(lost, b.owner)
	b.vanish(gone)
	unowned := b.foreignNode("unowned-"+cluster, cluster, "", "")
	second := b.foreignNode("second-"+cluster, cluster, settled.UID, b.installation.UID())
	b.foreignNode("other-"+cluster, "other", "", "")
	b.sent("")
	pass := &orphans.Inventory{Orphans: b.orphans()}
	pass.GracePeriod = 24 * time.Hour
	ids := func(orphaned bool) []string {
		t.Helper()
		if err := pass.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		report := b.inventory()
		var found []string
		for _, one := range report.Instances {
			if one.Orphaned == orphaned {
				found = append(found, one.ProviderID)
			}
		}
		return found
	}
	want := []string{second, unowned}
	if got := ids(false); !slices.Equal(got, want) {
		t.Errorf("candidates are %q, want %q", got, want)
	}
	if got := gaugeOf(t, pass, "machine_iac_orphaned_instances"); got != 0 || len(b.sent("OrphanedInstance")) != 0 {
		t.Errorf("%v are counted while they are young, want none, and no event", got)
	}
	b.later(25 * time.Hour)
	for range 2 {
		if got := ids(true); !slices.Equal(got, want) {
			t.Errorf("orphans are %q, want %q", got, want)
		}
	}
	if got := gaugeOf(t, pass, "machine_iac_orphaned_instances"); got != 2 {
		t.Errorf("%v are counted, want 2", got)
	}
	if got := b.sent("OrphanedInstance"); len(got) != 2 {
		t.Errorf("events %q, want one for each", got)
	}
	if heads, err := b.store.List(t.Context(), b.namespace); err != nil || len(heads) != 3 {
		t.Errorf("there are %d states after inventories, %v; want 3 as before", len(heads), err)
	}
}

// An orphan stays in the report when no Machine is left that could list its place, also with
// another leader, and goes when its place is listed without it.
func TestAnOrphanStaysReportedWithoutAMachineThatListsIt(t *testing.T) {
	b := newBench(t)
	last := b.machine()
	last.Labels[machinev1beta1.MachineClusterIDLabel] = b.namespace
	b.bring(last)
	if err := b.sync(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	unowned := b.foreignNode("unowned-"+b.namespace, b.namespace, "", "")
	pass := &orphans.Inventory{Orphans: b.orphans()}
	expect := func(when string, want ...lifecycle.OrphanedInstance) {
		t.Helper()
		if err := pass.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := b.inventory().Instances
		if len(got) != len(want) {
			t.Fatalf("%s: the report has %+v, want %d instances", when, got, len(want))
		}
		for i, one := range want {
			if got[i].ProviderID != one.ProviderID || !got[i].Orphaned || !got[i].LastListed.Equal(one.LastListed) {
				t.Errorf("%s: got %+v, want the orphan %s, last listed %s", when, got[i], one.ProviderID, one.LastListed)
			}
		}
	}
	b.later(time.Minute) // the API server says when it was made
	listed := b.clock.Now().UTC()
	orphan := func(at time.Time) lifecycle.OrphanedInstance {
		return lifecycle.OrphanedInstance{ListedInstance: lifecycle.ListedInstance{ProviderID: unowned}, LastListed: at}
	}
	expect("with a Machine", orphan(time.Time{}))
	if err := b.drive(b.Delete, last); err != nil {
		t.Fatal(err)
	}
	b.later(time.Minute)
	expect("without one", orphan(listed))
	b.later(time.Minute)
	pass = &orphans.Inventory{Orphans: b.orphans()}
	expect("with another leader", orphan(listed))
	next := b.machine()
	next.Labels[machinev1beta1.MachineClusterIDLabel] = b.namespace
	b.bring(next)
	if err := b.sync(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	expect("with a new Machine", orphan(time.Time{}))
	if err := b.client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "unowned-" + b.namespace}}); err != nil {
		t.Fatal(err)
	}
	expect("once it is gone")
}

func TestAnInventoryThatFailsIsReported(t *testing.T) {
	b := newBench(t)
	b.bring(b.machine())
	pass := &orphans.Inventory{Orphans: b.orphans()}
	back := b.moves()
	defer back()
	if err := pass.Check(t.Context()); err == nil || len(b.inventory().Problems) != 1 {
		t.Errorf("Check: %v; problems %q; want one of each", err, b.inventory().Problems)
	}
}

// An instance that bears no Machine's UID may be one of the control plane, and one without the UID
// of this installation another operator's.
func TestThePolicyDestroysAnInstanceThatBelongsToNobody(t *testing.T) {
	b := newBench(t)
	b.adopts = adoption.Never
	b.start(shortdir.New(t), "owner-2")
	cluster := b.namespace
	owner := b.machine()
	owner.Labels[machinev1beta1.MachineClusterIDLabel] = cluster
	b.bring(owner)
	if err := b.sync(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	const gone = "6a2c1f3e-9e0b-4a53-8ae1-6d6d9d6c1c11"
	left := b.foreignNode("left-"+cluster, cluster, gone, b.installation.UID())
	b.foreignNode("control-"+cluster, cluster, "", b.installation.UID())
	b.foreignNode("theirs-"+cluster, cluster, gone, "another-installation")
	b.foreignNode("before-"+cluster, cluster, gone, "")
	pass := &orphans.Inventory{Orphans: b.orphans()}
	pass.GracePeriod = 20 * time.Second // within what the clock of a grant may differ from the API server's
	b.clock.SetTime(time.Now())         // a busy machine has taken longer to get here
	check := func(policy orphans.Policy) []machinev1beta1.Machine {
		t.Helper()
		pass.Policy = policy
		if err := pass.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := &machinev1beta1.MachineList{}
		if err := b.client.List(t.Context(), list, client.InNamespace(b.namespace)); err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(list.Items, func(m machinev1beta1.Machine) bool { return m.UID == owner.UID })
	}
	if made := check(orphans.PolicyDelete); len(made) > 0 {
		t.Fatalf("at the first look it makes %v", made)
	}
	b.later(30 * time.Second)
	if made := check(orphans.PolicyRetain); len(made) > 0 {
		t.Fatalf("to retain, it makes %v", made)
	}
	made := check(orphans.PolicyDelete)
	if len(made) != 1 || made[0].DeletionTimestamp.IsZero() || *made[0].Spec.ProviderID != left || made[0].Name != "left-"+cluster {
		t.Fatalf("it makes %+v, want one Machine for %s that is deleted", made, left)
	}
	if again := check(orphans.PolicyDelete); len(again) != 1 {
		t.Errorf("the next look makes another: %v", again)
	}
	for deadline := time.Now().Add(patience); b.node(&made[0]) != nil; time.Sleep(pause) {
		err := b.Delete(t.Context(), &made[0])
		if time.Now().After(deadline) {
			t.Fatalf("it is not destroyed in time: %v", err)
		}
	}
	for _, stays := range []string{"control-" + cluster, "theirs-" + cluster, "before-" + cluster, owner.Name} {
		if b.node(&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: stays}}) == nil {
			t.Errorf("the instance %s is gone, which is a Machine's, or does not bear the UIDs of a Machine and of this installation", stays)
		}
	}

	unfinished := b.machine() // as one whose deletion did not get through
	metav1.SetMetaDataAnnotation(&unfinished.ObjectMeta, record.OrphanActionAnnotation, record.OrphanDestroy)
	if err := b.client.Update(t.Context(), unfinished); err != nil {
		t.Fatal(err)
	}
	for _, one := range check(orphans.PolicyDelete) {
		if one.UID == unfinished.UID && one.DeletionTimestamp.IsZero() {
			t.Error("a Machine that was made to destroy an instance is not deleted by the next inventory")
		}
	}
}

func TestTwoManagersOfOneClusterLeaveEachOthersInstances(t *testing.T) {
	first, second := newBench(t), newBench(t)
	cluster := first.namespace
	for _, b := range []*bench{first, second} {
		m := b.machine()
		m.Labels[machinev1beta1.MachineClusterIDLabel] = cluster
		b.bring(m)
		if err := b.sync(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []*bench{first, second} {
		pass := &orphans.Inventory{Orphans: b.orphans()}
		pass.Policy = orphans.PolicyDelete
		for range 3 {
			if err := pass.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.later(time.Hour)
		}
		if report := b.inventory(); len(report.Instances) != 1 || report.Instances[0].Installation == string(b.installation.UID()) {
			t.Errorf("the inventory reports %+v, want the other manager's instance", report.Instances)
		}
		list := &machinev1beta1.MachineList{}
		if err := b.client.List(t.Context(), list, client.InNamespace(b.namespace)); err != nil || len(list.Items) != 1 {
			t.Errorf("there are %d Machines, %v; want none that is to destroy an instance of the other manager", len(list.Items), err)
		}
	}
}

func TestAForgedInventoryMakesNoInstanceOld(t *testing.T) {
	b := newBench(t)
	cluster := b.namespace
	owner := b.machine()
	owner.Labels[machinev1beta1.MachineClusterIDLabel] = cluster
	b.bring(owner)
	left := b.foreignNode("left-"+cluster, cluster, "6a2c1f3e-9e0b-4a53-8ae1-6d6d9d6c1c11", b.installation.UID())
	forged, err := json.Marshal(lifecycle.InventoryReport{Instances: []lifecycle.OrphanedInstance{
		{ListedInstance: lifecycle.ListedInstance{ProviderID: left}, FirstSeen: b.clock.Now().Add(-48 * time.Hour), Orphaned: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	pass := &orphans.Inventory{Orphans: b.orphans()}
	pass.Policy = orphans.PolicyDelete
	if err := b.client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: lifecycle.InventoryConfigMap}, Data: map[string]string{lifecycle.InventoryKey: string(forged)},
	}); err != nil {
		t.Fatal(err)
	}
	if err := pass.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := b.inventory(); len(report.Instances) != 1 || !report.Instances[0].FirstSeen.Equal(report.Checked) {
		t.Errorf("the inventory reports %+v, want one instance that is first seen now", report.Instances)
	}
	list := &machinev1beta1.MachineList{}
	if err := b.client.List(t.Context(), list, client.InNamespace(b.namespace)); err != nil || len(list.Items) != 1 {
		t.Errorf("there are %d Machines, %v; want none that is to destroy an instance", len(list.Items), err)
	}
}
