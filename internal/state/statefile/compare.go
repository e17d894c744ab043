package statefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Relation says how a state that could not be saved relates to the stored one.
type Relation string

const (
	// RelationSame is the stored state.
	RelationSame Relation = "Same"
	// RelationNewer is of the stored lineage with a higher serial, or there is no stored state.
	RelationNewer Relation = "Newer"
	// RelationOlder is of the stored lineage with a lower serial.
	RelationOlder Relation = "Older"
	// RelationConflicting has lineage and serial of the stored state and another content.
	RelationConflicting Relation = "Conflicting"
	// RelationForeign is of another lineage.
	RelationForeign Relation = "Foreign"
)

// Comparison is what a state that could not be saved is beside the stored one.
type Comparison struct {
	// Relation by lineage, serial and content.
	Relation Relation
	// Serial of the unsaved state.
	Serial uint64
	// Lineage of the unsaved state.
	Lineage string
	// Missing are the managed resources that the unsaved state has and the stored one does not. With any, the unsaved state
	// must not be dropped: it may be all that knows of them.
	Missing []ResourceID
}

// ResourceID names one instance of a resource.
type ResourceID struct {
	// Address as engines print it, with its index.
	Address string `json:"address"`
	// ID that the provider gave it, empty where it has none or it is not known.
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

// Compare says what a state that an engine could not save is beside the stored one, which is nil where none was stored. It
// fails when either cannot be read.
func Compare(stored, unsaved []byte) (Comparison, error) {
	next, err := Parse(unsaved)
	if err != nil {
		return Comparison{}, fmt.Errorf("comparing the unsaved state: %w", err)
	}
	found, err := instancesOf(unsaved, next)
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
	have, err := instancesOf(stored, current)
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

// sameJSON compares regardless of white space: engines indent what they write to disk.
func sameJSON(a, b []byte) bool {
	var left, right bytes.Buffer
	if json.Compact(&left, a) != nil || json.Compact(&right, b) != nil {
		return false
	}
	return bytes.Equal(left.Bytes(), right.Bytes())
}

// instance is one thing that a state says exists.
type instance struct {
	ResourceID
	kind string
}

// missingFrom picks what found has and have does not. One that has an ID is the same only under that ID, wherever it stands in
// the state, and each ID counts as often as it is there: some providers give the same to all. One without an ID is known by
// its address, which means nothing across lineages.
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

// anywhere is the instance without regard for its address.
func (i instance) anywhere() instance {
	i.Address = ""
	return i
}

// builtin is the provider in the engine itself. Its resources, terraform_data, are nowhere but in a state.
const builtin = `provider["terraform.io/builtin/terraform"]`

// instancesOf lists the managed instances of a state that parsed well.
func instancesOf(raw []byte, parsed *State) ([]instance, error) {
	if parsed.Format == FormatPulumi {
		return checkpointInstances(raw)
	}
	var file struct {
		Resources []struct {
			Module    string `json:"module"`
			Mode      string `json:"mode"`
			Type      string `json:"type"`
			Name      string `json:"name"`
			Provider  string `json:"provider"`
			Instances []struct {
				Index      json.RawMessage `json:"index_key"`
				Deposed    string          `json:"deposed"`
				Attributes json.RawMessage `json:"attributes"`
			} `json:"instances"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	var found []instance
	for _, r := range file.Resources {
		if r.Mode == ModeData || r.Provider == builtin {
			continue
		}
		address := Resource{Module: r.Module, Mode: r.Mode, Type: r.Type, Name: r.Name}.Address()
		for _, i := range r.Instances {
			at := address
			if len(i.Index) > 0 {
				at += "[" + string(i.Index) + "]"
			}
			if i.Deposed != "" {
				at += " deposed " + i.Deposed
			}
			found = append(found, instance{kind: r.Type, ResourceID: ResourceID{Address: at, ID: idOf(i.Attributes)}})
		}
	}
	return found, nil
}

// checkpointInstances counts as well what Pulumi had begun to make: it may exist.
func checkpointInstances(raw []byte) ([]instance, error) {
	envelope, err := ParseCheckpoint(raw)
	if err != nil {
		return nil, err
	}
	var file checkpoint
	if err := json.Unmarshal(envelope.Raw, &file); err != nil {
		return nil, Malformed("its checkpoint is " + describeJSON(err))
	}
	if file.Checkpoint == nil || file.Checkpoint.Latest == nil {
		return nil, nil
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
	for _, r := range file.Checkpoint.Latest.Resources {
		if err := add(r); err != nil {
			return nil, err
		}
	}
	for _, pending := range file.Checkpoint.Latest.PendingOperations {
		if pending.Type != "creating" {
			continue
		}
		if err := add(pending.Resource); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// idOf reads the attribute "id" of Terraform's attributes, empty when there is none.
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
