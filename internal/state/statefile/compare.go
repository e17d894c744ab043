package statefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Relation is how an unsaved state relates to the stored one.
type Relation string

const (
	// RelationSame is the stored state.
	RelationSame Relation = "Same"
	// RelationNewer has the stored lineage and a higher serial, or there is no stored state.
	RelationNewer Relation = "Newer"
	// RelationOlder has the stored lineage and a lower serial.
	RelationOlder Relation = "Older"
	// RelationConflicting has the stored lineage and serial, but different content.
	RelationConflicting Relation = "Conflicting"
	// RelationForeign has another lineage.
	RelationForeign Relation = "Foreign"
)

// Comparison is the result of comparing an unsaved state with the stored one.
type Comparison struct {
	Relation Relation
	// Serial of the unsaved state.
	Serial uint64
	// Lineage of the unsaved state.
	Lineage string
	// Missing are the managed resources that only the unsaved state has. If there are any, keep the unsaved state: it
	// may be the only record of them.
	Missing []ResourceID
}

// ResourceID names one instance of a resource.
type ResourceID struct {
	// Address is the engine's address, with the index.
	Address string `json:"address"`
	// ID is the provider's ID; empty if there is none or it is unknown.
	ID string `json:"id,omitempty"`
}

// String returns the address and the ID.
func (r ResourceID) String() string {
	if r.ID == "" {
		return r.Address
	}
	return r.Address + " (" + r.ID + ")"
}

// Names lists resources for people.
func Names(ids []ResourceID) string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, id.String())
	}
	return strings.Join(names, ", ")
}

// Compare compares a state that an engine could not save with the stored one, which may be nil. It fails if either
// cannot be read.
func Compare(stored, unsaved []byte) (Comparison, error) {
	next, err := Parse(unsaved)
	if err != nil {
		return Comparison{}, fmt.Errorf("comparing the unsaved state: %w", err)
	}
	found, err := formatOf(next.Format).instances(unsaved)
	if err != nil {
		return Comparison{}, fmt.Errorf("comparing the unsaved state: %w", err)
	}
	result := Comparison{Relation: RelationNewer, Serial: next.Serial, Lineage: next.Lineage}
	if stored == nil {
		result.Missing = missingFrom(nil, found, true)
		return result, nil
	}
	current, err := Parse(stored)
	if err != nil {
		return Comparison{}, fmt.Errorf("comparing with the stored state: %w", err)
	}
	have, err := formatOf(current.Format).instances(stored)
	if err != nil {
		return Comparison{}, fmt.Errorf("comparing with the stored state: %w", err)
	}
	result.Relation = relation(current, next, stored, unsaved)
	result.Missing = missingFrom(have, found, result.Relation == RelationForeign)
	return result, nil
}

func relation(current, next *State, stored, unsaved []byte) Relation {
	switch {
	case next.Lineage != current.Lineage:
		return RelationForeign
	case next.Serial > current.Serial:
		return RelationNewer
	case next.Serial < current.Serial:
		return RelationOlder
	case sameJSON(stored, unsaved):
		return RelationSame
	}
	return RelationConflicting
}

// sameJSON ignores white space, because engines indent the files that they write.
func sameJSON(a, b []byte) bool {
	var left, right bytes.Buffer
	if json.Compact(&left, a) != nil || json.Compact(&right, b) != nil {
		return false
	}
	return bytes.Equal(left.Bytes(), right.Bytes())
}

// instance is an existing resource in a state.
type instance struct {
	ResourceID
	kind string
}

// missingFrom returns the instances in found that have lacks. It matches instances by ID, at any address, and counts
// duplicates, since some providers give the same ID to all. It matches instances without an ID by address, which means
// nothing across lineages.
func missingFrom(have, found []instance, foreign bool) []ResourceID {
	addresses, exact, moved := map[string]bool{}, map[instance]int{}, map[instance]int{}
	for _, i := range have {
		addresses[i.Address] = true
		exact[i]++
		moved[i.anywhere()]++
	}
	known := make([]bool, len(found))
	for at, i := range found {
		if known[at] = exact[i] > 0 && i.ID != ""; known[at] {
			exact[i]--
			moved[i.anywhere()]--
		}
	}
	var missing []ResourceID
	for at, i := range found {
		switch {
		case known[at] || i.ID == "" && !foreign && addresses[i.Address]:
		case i.ID != "" && moved[i.anywhere()] > 0:
			moved[i.anywhere()]--
		default:
			missing = append(missing, i.ResourceID)
		}
	}
	return missing
}

// anywhere returns the instance without its address.
func (i instance) anywhere() instance {
	i.Address = ""
	return i
}

// builtin is the engine's own provider. Its resources, terraform_data, exist only in a state.
const builtin = `provider["terraform.io/builtin/terraform"]`

func terraformInstances(raw []byte) ([]instance, error) {
	objects, err := terraformObjects(raw)
	var found []instance
	for _, one := range objects {
		at := one.address
		if one.deposed != "" {
			at += " deposed " + one.deposed
		}
		found = append(found, instance{kind: one.kind, ResourceID: ResourceID{Address: at, ID: idOf(one.attributes)}})
	}
	return found, err
}

// checkpointInstances includes resources whose create Pulumi had started, because they may exist.
func checkpointInstances(raw []byte) ([]instance, error) {
	_, latest, err := parseDeployment(raw)
	if err != nil {
		return nil, err
	}
	var found []instance
	add := func(r checkpointResource) error {
		if !r.made() || r.External {
			return nil
		}
		resource, err := r.resource()
		if err != nil {
			return Malformed("a resource " + err.Error())
		}
		found = append(found, instance{kind: r.Type, ResourceID: ResourceID{Address: resource.Address(), ID: r.ID}})
		return nil
	}
	for _, r := range latest.Resources {
		if err := add(r); err != nil {
			return nil, err
		}
	}
	for _, pending := range latest.PendingOperations {
		if pending.Type != "creating" {
			continue
		}
		if err := add(pending.Resource); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// idOf returns the attribute "id", or "".
func idOf(attributes json.RawMessage) string {
	var named struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(attributes, &named) != nil || string(named.ID) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(named.ID, &text) == nil {
		return text
	}
	return strings.TrimSpace(string(named.ID))
}
