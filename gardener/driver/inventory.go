package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What the operator keeps of its inventory, and what a Machine has that is made to destroy an instance: docs/contracts/state.md and
// docs/adoption.md of the operator.
const (
	inventoryName = "machine-iac-inventory"
	inventoryKey  = "inventory.json"

	labelMachineUID     = "machine-iac.io/machine-uid"
	annotationAdoption  = "machine-iac.io/adoption"
	annotationRequested = "machine-iac.io/adoption-requested-at"
	annotationOrphan    = "machine-iac.io/orphan-action"
	annotationInstance  = "machine-iac.io/instance"
	machineFinalizer    = "machine.machine.openshift.io"

	// annotationRemoved is this driver's own, on the Machine that orphans were listed by: when which of them were removed, as JSON. The last inventory has
	// them until there is a later one.
	annotationRemoved = "machine-iac.io/orphans-removed"
)

// inventory is what the operator's last inventory of the cluster's instances has found.
type inventory struct {
	Checked   time.Time  `json:"checked"`
	Instances []instance `json:"instances"`
}

// instance is one that belongs to no Machine and no state.
type instance struct {
	ProviderID string    `json:"provider_id"`
	Name       string    `json:"name"`
	MachineUID string    `json:"machine_uid"`
	ListedBy   string    `json:"listedBy"`
	FirstSeen  time.Time `json:"firstSeen"`
	Orphaned   bool      `json:"orphaned"`
}

// removable reports whether MCM may be given an instance as an orphan: it is older than the operator's grace period, two inventories have found
// it, and it was made for a Machine. Others may be the cluster's own, such as those of its control plane.
func (i *instance) removable(checked time.Time) bool {
	return i.Orphaned && i.FirstSeen.Before(checked) && i.MachineUID != "" && i.ProviderID != ""
}

// orphan is an instance that MCM may remove, and the Machine that it was listed by, whose providerSpec and credentials reach it.
type orphan struct {
	instance
	like *machine
	// checked is when the inventory was made that has it.
	checked time.Time
}

// orphans returns the instances that MCM may remove, of those that were listed by one of these Machines.
func (s store) orphans(ctx context.Context, namespace string, of []*machine) ([]orphan, error) {
	object, err := s.client.Resource(configMaps).Namespace(namespace).Get(ctx, inventoryName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s: %w", inventoryName, err)
	}
	var last inventory
	text, _, _ := unstructured.NestedString(object.Object, "data", inventoryKey)
	if json.Unmarshal([]byte(text), &last) != nil {
		return nil, nil // it was edited, and the operator writes it anew
	}
	var found []orphan
	for _, m := range of {
		removed := m.removedOrphans()
		for _, one := range last.Instances {
			if m.DeletionTimestamp == nil && one.ListedBy == m.Name && one.removable(last.Checked) && !removed[one.ProviderID].After(last.Checked) {
				found = append(found, orphan{one, m, last.Checked})
			}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	// Somebody may have come to own them since.
	owned, err := s.owners(ctx, namespace)
	return slices.DeleteFunc(found, func(one orphan) bool {
		return owned["id:"+instanceOf(one.ProviderID)] || owned["uid:"+one.MachineUID]
	}), err
}

// owners returns which instances belong to somebody: "id:" with those that Machines name, and "uid:" with the UIDs of Machines and states that
// may yet turn out to have one.
func (s store) owners(ctx context.Context, namespace string) (map[string]bool, error) {
	owned := map[string]bool{}
	states, err := s.client.Resource(secrets).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: labelMachineUID})
	if err != nil {
		return nil, fmt.Errorf("listing states: %w", err)
	}
	for n := range states.Items {
		owned["uid:"+states.Items[n].GetLabels()[labelMachineUID]] = true
	}
	list, err := s.client.Resource(machines).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	for n := range list.Items {
		m, err := read(&list.Items[n])
		if err != nil {
			return nil, err
		}
		if m.Spec.ProviderID != "" {
			owned["id:"+instanceOf(m.Spec.ProviderID)] = true
		}
		// A second instance of one that is settled is nobody's.
		if ready, err := m.initialized(); err != nil || !ready || m.Status.ProviderStatus.Run != nil || m.DeletionTimestamp != nil {
			owned["uid:"+string(m.UID)] = true
			owned["uid:"+m.restoredFrom()] = true
		} else {
			delete(owned, "uid:"+string(m.UID))
		}
	}
	return owned, nil
}

// instanceOf returns the part of a provider ID that names the instance, as the operator compares them.
func instanceOf(providerID string) string {
	return strings.ToLower(providerID[strings.LastIndex(providerID, "/")+1:])
}

// destroyOrphan has the operator destroy an instance that belongs to nobody: a Machine is made that adopts it, and deleted. It reports whether the
// instance was still listed.
func (d *Driver) destroyOrphan(ctx context.Context, class *mcm.MachineClass, providerID string) (bool, error) {
	found, err := d.ofClass(ctx, class)
	if err != nil {
		return false, err
	}
	orphans, err := d.orphans(ctx, class.Namespace, found)
	if err != nil {
		return false, err
	}
	for _, one := range orphans {
		if one.ProviderID == providerID {
			return true, d.adoptAndDelete(ctx, one)
		}
	}
	return false, nil
}

// adoptAndDelete makes the Machine of an orphan, like that of the Machine that it was listed by, and deletes it.
func (d *Driver) adoptAndDelete(ctx context.Context, one orphan) error {
	client := d.client.Resource(machines).Namespace(one.like.Namespace)
	var err error
	for _, name := range orphanNames(one) {
		var made *unstructured.Unstructured
		made, err = client.Create(ctx, orphanMachine(name, one, d.options.Clock.Now()), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			break
		}
		// Now that the next inventory finds its owner. Otherwise it would be adopted once more when it is gone.
		if err = d.noteRemoved(ctx, one); err != nil {
			return err
		}
		err = client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.GetUID()))})
		return wrap(err, "deleting Machine "+name+", which adopts an orphan")
	}
	return wrap(err, "creating a Machine that adopts the orphan "+one.ProviderID)
}

// noteRemoved records that an orphan is being removed.
func (d *Driver) noteRemoved(ctx context.Context, one orphan) error {
	removed := map[string]time.Time{one.ProviderID: d.options.Clock.Now().UTC()}
	for id, at := range one.like.removedOrphans() {
		if at.After(one.checked) {
			removed[id] = at
		}
	}
	text, err := json.Marshal(removed)
	if err != nil {
		return fmt.Errorf("encoding the annotation %s: %w", annotationRemoved, err)
	}
	one.like.Annotations[annotationRemoved] = string(text)
	_, err = d.patch(ctx, machines, one.like.Namespace, one.like.Name, types.MergePatchType, map[string]any{
		"metadata": map[string]any{"uid": one.like.UID, "annotations": map[string]any{annotationRemoved: string(text)}},
	})
	return wrap(err, "recording on Machine "+one.like.Name+" that an orphan is removed")
}

// removedOrphans returns when which orphans were removed that the Machine has listed.
func (m *machine) removedOrphans() map[string]time.Time {
	removed := map[string]time.Time{}
	if json.Unmarshal([]byte(m.Annotations[annotationRemoved]), &removed) != nil {
		return nil // none, or edited
	}
	return removed
}

// orphanNames returns what the Machine may be called: as the instance, which modules take for a proof, and otherwise where that name is taken, or none
// of a Machine.
func orphanNames(one orphan) []string {
	sum := sha256.Sum256([]byte(one.ProviderID))
	other := "orphan-" + hex.EncodeToString(sum[:6])
	if len(validation.IsDNS1123Subdomain(one.Name)) > 0 {
		return []string{other}
	}
	return []string{one.Name, other}
}

func orphanMachine(name string, one orphan, now time.Time) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1",
		"kind":       "Machine",
		"metadata": map[string]any{
			"namespace":  one.like.Namespace,
			"name":       name,
			"finalizers": []any{machineFinalizer},
			"labels":     map[string]any{labelCluster: one.like.Labels[labelCluster]},
			"annotations": map[string]any{
				annotationAdoption: "Adopt", annotationRequested: now.UTC().Format(time.RFC3339), annotationOrphan: "Destroy",
			},
		},
		"spec": map[string]any{"providerID": one.ProviderID, "providerSpec": map[string]any{"value": one.like.Spec.ProviderSpec.Value}},
	}}
}
