package pulumi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// StackName is the name of every stack here: each has a backend of its own.
const StackName = "machine"

const (
	providerPrefix  = "pulumi:providers:"
	stackType       = "pulumi:pulumi:Stack"
	checkpointScope = "organization"
)

// checkpoint is what is read of Pulumi's file. Whatever else is in it stays as it is.
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
	_ = json.Unmarshal(r[field], &text) // no text is none
	return text
}

func (r resource) flag(field string) bool {
	var flag bool
	_ = json.Unmarshal(r[field], &flag) // no flag is none
	return flag
}

func (r resource) set(field, text string) {
	raw, _ := json.Marshal(text) // texts always can be
	r[field] = raw
}

// assumeInputs fills in unknown inputs of the object from what it is. A provider compares inputs with it,
// and the next run that reaches the end records its own.
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

// address returns type and name, as reports have them.
func (r resource) address() string { return addressOf(r.text("urn"), r.text("type")) }

func addressOf(urn, typ string) string {
	_, name, _ := cutLast(urn)
	return typ + "." + name
}

// cutLast cuts the last part off a URN, or the id off a reference to a provider.
func cutLast(urn string) (before, last string, found bool) {
	const separator = "::"
	if at := strings.LastIndex(urn, separator); at >= 0 {
		return urn[:at], urn[at+len(separator):], true
	}
	return urn, "", false
}

// emptyCheckpoint is that of a stack that was never run.
func emptyCheckpoint(project string) []byte {
	return fmt.Appendf(nil, `{"version":3,"checkpoint":{"stack":"%s/%s/%s"}}`, checkpointScope, project, StackName)
}

var errNoCheckpoint = errors.New("reading a checkpoint: it is not one that Pulumi wrote, of version 3")

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
		decode(read.latest["resources"], &read.resources) != nil || decode(read.latest["pending_operations"], &read.pending) != nil {
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

// LookupResources returns the objects that a lookup has read, by address: what each looks like now. They may hold secrets.
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

// Adopt returns a checkpoint with the objects in it that a lookup has read, and without the operations that had begun to make something:
// what they made has been looked for, and is among the objects or is not there. A resource that the checkpoint has already stays as it is.
// A lookup that is nil has found nothing, and a checkpoint that is nil is an empty one; one of both is there.
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

// sameKey refuses to mix what different keys encrypt.
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
		return errors.New("adopting what a lookup found: it is encrypted with another key than the checkpoint; Rekey the checkpoint first")
	}
	return nil
}

// adopt takes a resource over with what it refers to: the stack, and its provider, under the id that the provider has here.
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
