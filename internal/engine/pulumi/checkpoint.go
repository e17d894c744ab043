package pulumi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// StackName is the name of every stack. Each has its own backend.
const StackName = "machine"

const (
	providerPrefix  = "pulumi:providers:"
	stackType       = "pulumi:pulumi:Stack"
	checkpointScope = "organization"
)

// checkpoint is the part of Pulumi's file that is read. The rest stays unchanged.
type checkpoint struct {
	Version    int                        `json:"version"`
	Features   json.RawMessage            `json:"features,omitempty"`
	Checkpoint map[string]json.RawMessage `json:"checkpoint"`

	latest    map[string]json.RawMessage
	resources []resource
	pending   []operation
}

type operation struct {
	Resource resource `json:"resource"`
	Type     string   `json:"type"`
}

// resource is one resource with all its fields.
type resource map[string]json.RawMessage

func (r resource) text(field string) string {
	var text string
	_ = json.Unmarshal(r[field], &text) // "" if it is not a string
	return text
}

func (r resource) flag(field string) bool {
	var flag bool
	_ = json.Unmarshal(r[field], &flag) // false if it is not a bool
	return flag
}

func (r resource) set(field, text string) {
	raw, _ := json.Marshal(text) // strings can always be encoded
	r[field] = raw
}

// assumeInputs sets unknown inputs of the object from its outputs. A provider compares inputs with
// them, and the next completed run records the real ones.
func (r resource) assumeInputs() {
	var outputs, inputs map[string]json.RawMessage
	if decode(r["inputs"], &inputs) != nil || len(inputs) > 0 || decode(r["outputs"], &outputs) != nil {
		return
	}
	maps.DeleteFunc(outputs, func(name string, _ json.RawMessage) bool { return strings.HasPrefix(name, "__") })
	if raw, err := json.Marshal(outputs); err == nil {
		r["inputs"] = raw
	}
}

func (r resource) provider() bool { return strings.HasPrefix(r.text("type"), providerPrefix) }

// address returns type and name, as in reports.
func (r resource) address() string { return addressOf(r.text("urn"), r.text("type")) }

func addressOf(urn, typ string) string {
	_, name, _ := cutLast(urn)
	return typ + "." + name
}

// cutLast cuts the last part off a URN, or the ID off a reference to a provider.
func cutLast(urn string) (before, last string, found bool) {
	const separator = "::"
	if at := strings.LastIndex(urn, separator); at >= 0 {
		return urn[:at], urn[at+len(separator):], true
	}
	return urn, "", false
}

// emptyCheckpoint returns the checkpoint of a stack that was never run.
func emptyCheckpoint(project string) []byte {
	return fmt.Appendf(nil, `{"version":3,"checkpoint":{"stack":"%s/%s/%s"}}`, checkpointScope, project, StackName)
}

var errNoCheckpoint = errors.New("reading a checkpoint: not a Pulumi checkpoint of version 3")

func readCheckpoint(raw []byte) (*checkpoint, error) {
	read := &checkpoint{}
	if json.Unmarshal(raw, read) != nil || read.Version != 3 || read.Checkpoint == nil {
		return nil, errNoCheckpoint
	}
	latest, exists := read.Checkpoint["latest"]
	if !exists || string(latest) == "null" {
		return read, nil
	}
	if json.Unmarshal(latest, &read.latest) != nil ||
		decode(read.latest["resources"], &read.resources) != nil ||
		decode(read.latest["pending_operations"], &read.pending) != nil {
		return nil, errNoCheckpoint
	}
	return read, nil
}

func decode(raw json.RawMessage, into any) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func (c *checkpoint) encode() ([]byte, error) {
	if c.latest != nil {
		for field, value := range map[string]any{"resources": c.resources, "pending_operations": c.pending} {
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("writing a checkpoint: %w", err)
			}
			c.latest[field] = raw
		}
		latest, err := json.Marshal(c.latest)
		if err != nil {
			return nil, fmt.Errorf("writing a checkpoint: %w", err)
		}
		c.Checkpoint["latest"] = latest
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing a checkpoint: %w", err)
	}
	return raw, nil
}

func (c *checkpoint) find(urn string) resource {
	at := slices.IndexFunc(c.resources, func(r resource) bool { return r.text("urn") == urn && !r.flag("delete") })
	if at < 0 {
		return nil
	}
	return c.resources[at]
}

// LookupResources returns the current objects that a lookup has read, by address. They may be
// secret.
func LookupResources(lookup []byte) (map[string]json.RawMessage, error) {
	read, err := readCheckpoint(lookup)
	if err != nil {
		return nil, err
	}
	found := map[string]json.RawMessage{}
	for _, one := range read.resources {
		if one.flag("external") && !one.provider() {
			found[one.address()] = one["outputs"]
		}
	}
	return found, nil
}

// Adopt adds the objects that a lookup has read to a checkpoint and removes its pending creates:
// the lookup has searched for what they created. Resources that the checkpoint has already stay
// unchanged. A nil lookup found nothing, and a nil checkpoint is empty; at least one must not be
// nil.
func Adopt(raw, lookup []byte) ([]byte, error) {
	into, from := &checkpoint{}, &checkpoint{}
	var err error
	if lookup != nil {
		if from, err = readCheckpoint(lookup); err != nil {
			return nil, err
		}
	}
	if raw == nil {
		into = &checkpoint{Version: from.Version, Checkpoint: map[string]json.RawMessage{"stack": from.Checkpoint["stack"]}}
	} else if into, err = readCheckpoint(raw); err != nil {
		return nil, err
	}
	if err := into.sameKey(from); err != nil {
		return nil, err
	}
	into.pending = slices.DeleteFunc(into.pending, func(o operation) bool { return o.Type == "creating" })
	if into.latest == nil {
		into.latest, into.resources = from.latest, nil
	}
	for _, one := range from.resources {
		if one.flag("external") && !one.provider() && into.find(one.text("urn")) == nil {
			into.adopt(one, from)
		}
	}
	return into.encode()
}

// sameKey returns an error if the checkpoints are encrypted with different keys.
func (c *checkpoint) sameKey(from *checkpoint) error {
	salt, err := c.salt()
	if err != nil {
		return err
	}
	other, err := from.salt()
	if err != nil {
		return err
	}
	if salt != "" && other != "" && salt != other {
		return errors.New("adopting the result of a lookup: it is encrypted with another key than the checkpoint; Rekey the checkpoint first")
	}
	return nil
}

// adopt adds a resource and what it refers to: the stack, and its provider under the ID that the
// provider has here.
func (c *checkpoint) adopt(one resource, from *checkpoint) {
	for _, other := range from.resources {
		if other.text("type") == stackType && c.find(other.text("urn")) == nil {
			delete(other, "outputs")
			c.resources = append(c.resources, other)
		}
	}
	if urn, _, ok := cutLast(one.text("provider")); ok {
		own := c.find(urn)
		if own == nil {
			if own = from.find(urn); own != nil {
				c.resources = append(c.resources, own)
			}
		}
		if own != nil {
			one.set("provider", urn+"::"+own.text("id"))
		}
	}
	delete(one, "external")
	one.assumeInputs()
	c.resources = append(c.resources, one)
}
