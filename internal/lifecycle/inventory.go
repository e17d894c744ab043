package lifecycle

import (
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ListedInstance is an instance as a module's inventory lists it.
type ListedInstance struct {
	ProviderID string `json:"provider_id"`
	Name       string `json:"name"`
	// Created is when it was made, in RFC 3339; empty where the infrastructure does not say.
	Created string `json:"created"`
	// MachineUID is that of the Machine that it was made for; empty where it does not say.
	MachineUID string `json:"machine_uid"`
}

// Since returns when the instance was made; zero where that is not known.
func (i ListedInstance) Since() time.Time {
	at, err := time.Parse(time.RFC3339, i.Created)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Owners know which instances belong to Machines or states. The zero value knows none.
type Owners struct {
	ids  map[string]bool
	uids map[string]bool
}

// Add adds what Machines and states there are. It is called before instances are listed, and after: what is made or removed meanwhile belongs
// to somebody. A settled Machine has the one instance that its provider ID names, so a second one with its UID is nobody's; for any other,
// a run may be in progress that makes one.
func (o *Owners) Add(machines []machinev1beta1.Machine, heads []state.Head) {
	if o.ids == nil {
		o.ids, o.uids = map[string]bool{}, map[string]bool{}
	}
	byKey := map[state.Key]*state.Head{}
	for i := range heads {
		byKey[heads[i].Key] = &heads[i]
	}
	for i := range machines {
		m := &machines[i]
		head := byKey[state.KeyFor(m.Namespace, m.UID)]
		delete(byKey, state.KeyFor(m.Namespace, m.UID))
		providerID := m.Spec.ProviderID
		if providerID != nil && *providerID != "" {
			o.ids[instanceOf(*providerID)] = true
		}
		if providerID == nil || *providerID == "" || head == nil || !idle(head) {
			o.uids[string(m.UID)] = true
			o.uids[string(record.RestoredFrom(m))] = true
		}
	}
	for _, head := range byKey { // states without a Machine: orphans of their own
		o.uids[head.Labels[state.LabelMachineUID]] = true
	}
	for i := range heads {
		if identity := heads[i].Meta[record.IdentityUIDKey]; !idle(&heads[i]) {
			o.uids[identity] = true
		}
	}
}

// idle reports whether no run has begun with a state, and none has left it unsettled.
func idle(head *state.Head) bool {
	return head.Lock == nil && !record.HasIntent(head.Meta) && head.Managed > 0 && head.Problem == nil
}

// Own reports whether an instance belongs to a Machine or a state.
func (o *Owners) Own(i ListedInstance) bool {
	return o.ids[instanceOf(i.ProviderID)] || i.MachineUID != "" && o.uids[i.MachineUID]
}

// instanceOf returns the part of a provider ID that names the instance: what stands before it, such as a region or a zone, is written by some and
// left out by others.
func instanceOf(providerID string) string {
	return strings.ToLower(providerID[strings.LastIndex(providerID, "/")+1:])
}

const (
	// InventoryConfigMap is the name of the ConfigMap with the last inventory, in the namespace of the Machines.
	InventoryConfigMap = "machine-iac-inventory"
	// InventoryKey is the key of its JSON there: an [InventoryReport].
	InventoryKey = "inventory.json"
)

// InventoryReport is what the last inventory has found.
type InventoryReport struct {
	Checked time.Time `json:"checked"`
	// Instances belong to no Machine and no state. Those that are younger than the grace period are candidates only.
	Instances []OrphanedInstance `json:"instances"`
	// Problems say which inventories could not be made.
	Problems []string `json:"problems,omitempty"`
}

// OrphanedInstance is an instance that belongs to no Machine and no state.
type OrphanedInstance struct {
	ListedInstance
	// Module has listed it, in Place.
	Module string `json:"module"`
	Place  string `json:"place,omitempty"`
	// ListedBy names the Machine with whose providerSpec and credentials it was listed.
	ListedBy string `json:"listedBy,omitempty"`
	// FirstSeen is when it was first found so.
	FirstSeen time.Time `json:"firstSeen"`
	// Orphaned says that it is older than the grace period.
	Orphaned bool `json:"orphaned"`
}
