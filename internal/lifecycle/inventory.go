package lifecycle

import (
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ListedInstance is an instance in a module's inventory.
type ListedInstance struct {
	ProviderID string `json:"provider_id"`
	Name       string `json:"name"`
	// Created is its creation time in RFC 3339, or empty if the infrastructure does not report it.
	Created string `json:"created"`
	// MachineUID is the UID of the Machine that it was created for, or empty if unknown.
	MachineUID string `json:"machine_uid"`
	// Installation is the UID of the operator installation that created it, or empty if unknown.
	Installation string `json:"installation"`
}

// Since returns the creation time of the instance, or zero if unknown.
func (i ListedInstance) Since() time.Time {
	at, err := time.Parse(time.RFC3339, i.Created)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Owners knows which instances belong to Machines or states. The zero value knows none.
type Owners struct {
	ids  map[string]bool
	uids map[string]bool
}

// Add records the existing Machines and states. Call it before and after instances are listed, so
// that instances created or removed meanwhile have an owner. A settled Machine owns only the
// instance that its provider ID names, so a second one with its UID is an orphan. For any other
// Machine, a create may be in progress.
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
	for _, head := range byKey { // states without a Machine, which are reported as orphans themselves
		o.uids[head.Labels[state.LabelMachineUID]] = true
	}
	for i := range heads {
		if identity := heads[i].Meta[record.IdentityUIDKey]; !idle(&heads[i]) {
			o.uids[identity] = true
		}
	}
}

// idle reports whether no run has begun with a state or left it unsettled.
func idle(head *state.Head) bool {
	return head.Lock == nil && !record.HasIntent(head.Meta) && head.Managed > 0 && head.Problem == nil
}

// Own reports whether an instance belongs to a Machine or a state.
func (o *Owners) Own(i ListedInstance) bool {
	return o.ids[instanceOf(i.ProviderID)] || i.MachineUID != "" && o.uids[i.MachineUID]
}

// instanceOf returns the last part of a provider ID, which names the instance. Some tools omit the
// parts before it, such as a region or a zone.
func instanceOf(providerID string) string {
	return strings.ToLower(providerID[strings.LastIndex(providerID, "/")+1:])
}

const (
	// InventoryConfigMap names the ConfigMap with the last inventory, in the Machines' namespace.
	InventoryConfigMap = "machine-iac-inventory"
	// InventoryKey is the key of its JSON, an [InventoryReport]. The installation signs it for the
	// purpose InventoryConfigMap and the namespace.
	InventoryKey = "inventory.json"
)

// InventoryReport is the result of the last inventory. It is for people: no decision is based on
// it.
type InventoryReport struct {
	Checked time.Time `json:"checked"`
	// Instances belong to no Machine and no state. Those younger than the grace period are only
	// candidates.
	Instances []OrphanedInstance `json:"instances"`
	// Problems are the inventories that failed.
	Problems []string `json:"problems,omitempty"`
}

// OrphanedInstance is an instance that belongs to no Machine and no state.
type OrphanedInstance struct {
	ListedInstance
	// Module listed it, in Place.
	Module string `json:"module"`
	Place  string `json:"place,omitempty"`
	// ListedBy names the Machine whose providerSpec and credentials were used.
	ListedBy string `json:"listedBy,omitempty"`
	// FirstSeen is when the leader first saw it without an owner. It starts anew with each leader.
	FirstSeen time.Time `json:"firstSeen"`
	// LastListed is when it was last listed, if no Machine has listed its place since. It is zero
	// for an instance listed by this report.
	LastListed time.Time `json:"lastListed,omitzero"`
	// Orphaned reports whether it is older than the grace period.
	Orphaned bool `json:"orphaned"`
}
