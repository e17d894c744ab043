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
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
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
func (b *bench) foreignNode(name, cluster string, uid types.UID) string {
	b.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"machine-iac.io/cluster-id": cluster}}}
	if uid != "" {
		node.Labels["machine-iac.io/machine-uid"] = string(uid)
	}
	node.Spec.ProviderID = "kubemark://" + name
	if err := plane.Create(b.t.Context(), node); err != nil {
		b.t.Fatal(err)
	}
	return node.Spec.ProviderID
}

// Instances of Machines, of runs in progress, of states without a Machine and of other clusters belong to somebody.
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
	unowned := b.foreignNode("unowned-"+cluster, cluster, "")
	second := b.foreignNode("second-"+cluster, cluster, settled.UID)
	b.foreignNode("other-"+cluster, "other", "")
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

// An instance that bears no Machine's UID may be one of the control plane.
func TestThePolicyDestroysAnInstanceThatBelongsToNobody(t *testing.T) {
	b := newBench(t)
	cluster := b.namespace
	owner := b.machine()
	owner.Labels[machinev1beta1.MachineClusterIDLabel] = cluster
	b.bring(owner)
	if err := b.sync(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	left := b.foreignNode("left-"+cluster, cluster, "6a2c1f3e-9e0b-4a53-8ae1-6d6d9d6c1c11")
	b.foreignNode("control-"+cluster, cluster, "")
	pass := &orphans.Inventory{Orphans: b.orphans()}
	pass.GracePeriod = 24 * time.Hour
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
	b.later(25 * time.Hour)
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
	for deadline := time.Now().Add(2 * time.Minute); b.node(&made[0]) != nil; time.Sleep(20 * time.Millisecond) {
		err := b.Delete(t.Context(), &made[0])
		if time.Now().After(deadline) {
			t.Fatalf("it is not destroyed after two minutes: %v", err)
		}
	}
	if b.node(&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "control-" + cluster}}) == nil || b.node(owner) == nil {
		t.Error("an instance is gone that bears no Machine's UID, or that is a Machine's")
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
