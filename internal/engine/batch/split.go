package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// Parts is what Machines' states contain beyond the root module's state. It contains no secrets and
// is stored with runs that change something.
type Parts struct {
	// Sensitive are the sorted names of the module's sensitive outputs.
	Sensitive []string `json:"sensitive,omitempty"`
	// Lineage is the lineage of the root module's state. It is empty if no Machine has a state, so
	// that the engine chooses one.
	Lineage  string `json:"lineage,omitempty"`
	Machines []Part `json:"machines"`
}

// Part is one Machine's share.
type Part struct {
	// Run is the ID of the Machine's own run, and Identity its identity.
	Run      string          `json:"run"`
	Identity json.RawMessage `json:"identity,omitempty"`
	// Lineage is the lineage of the Machine's state, and Serial its serial before the batch, zero if
	// it had no state.
	Lineage string `json:"lineage"`
	Serial  uint64 `json:"serial"`
}

// Parts returns what Split needs. stored are the states of the Machines, or nil. A Machine without
// a state gets the Lineage of its part.
func (m *Module) Parts(machines []Part, stored [][]byte) (*Parts, error) {
	parts := &Parts{Sensitive: m.sensitive, Machines: machines}
	for n, raw := range stored {
		if raw == nil {
			continue
		}
		var one stateFile
		if err := json.Unmarshal(raw, &one); err != nil || one.Lineage == "" {
			return nil, errors.New("reading a state: it has no lineage") // no wrapped error: it may contain part of the state
		}
		machines[n].Lineage, machines[n].Serial = one.Lineage, one.Serial
		parts.Lineage = lineage
	}
	return parts, nil
}

// Split splits a state of a root module whose calls are [Apart] by Machine. What is equal in two states of the root
// module is byte for byte equal in the states of the Machines, except for the serial.
func (p *Parts) Split(raw []byte) ([][]byte, error) {
	split, _, err := p.SplitComplete(raw)
	return split, err
}

// SplitComplete does the same, and reports for each Machine whether all that [Module.RootToApply]
// creates for it exists, and its outputs are known.
func (p *Parts) SplitComplete(raw []byte) (split [][]byte, complete []bool, err error) {
	var whole stateFile
	if err := json.Unmarshal(raw, &whole); err != nil || whole.Version != stateVersion {
		return nil, nil, fmt.Errorf("reading the state of a batch: unsupported version, must be %d", stateVersion)
	}
	if p.Lineage != "" && whole.Lineage != p.Lineage {
		return nil, nil, fmt.Errorf("reading the state of a batch: its lineage is not %q", p.Lineage)
	}
	machines, l := make([]stateFile, len(p.Machines)), Apart(len(p.Machines))
	numbers := map[string]int{}
	for n, part := range p.Machines {
		machines[n] = stateFile{
			Version: stateVersion, Engine: whole.Engine, Serial: part.Serial + whole.Serial, Lineage: part.Lineage,
			Outputs: map[string]stateOutput{}, Resources: []map[string]json.RawMessage{},
		}
		numbers[l.address(n)] = n
		if err := p.outputs(whole.Outputs[nameOf(n)], machines[n].Outputs); err != nil {
			return nil, nil, err
		}
	}
	complete = make([]bool, len(machines))
	for _, resource := range whole.Resources {
		if _, inside := resource["module"]; !inside {
			if err := p.marked(resource, machines, complete); err != nil {
				return nil, nil, err
			}
			continue
		}
		n, err := l.moveBack(resource, numbers)
		if err != nil {
			return nil, nil, err
		}
		machines[n].Resources = append(machines[n].Resources, resource)
	}
	split = make([][]byte, len(machines))
	for n, one := range machines {
		var err error
		if split[n], err = json.Marshal(one); err != nil {
			return nil, nil, errors.New("writing the state of a Machine failed")
		}
	}
	return split, complete, nil
}

// marked reads a resource of the root module: a Machine's marker, or what serves the pauses.
func (p *Parts) marked(resource map[string]json.RawMessage, machines []stateFile, complete []bool) error {
	var kind, name string
	if json.Unmarshal(resource["type"], &kind) != nil || json.Unmarshal(resource["name"], &name) != nil ||
		kind != markerType && kind != dataType {
		return errors.New("reading the state of a batch: it contains a resource of the root module")
	}
	n, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
	if err != nil || n >= len(machines) {
		return nil
	}
	var instances []struct {
		Status     string `json:"status"`
		Attributes struct {
			Input stateOutput `json:"input"`
		} `json:"attributes"`
	}
	if err := json.Unmarshal(resource["instances"], &instances); err != nil {
		return errors.New("reading the state of a batch: a marker has an unexpected format")
	}
	complete[n] = len(instances) == 1 && instances[0].Status == ""
	if !complete[n] {
		return nil
	}
	return p.outputs(instances[0].Attributes.Input, machines[n].Outputs)
}

// outputs adds a Machine's outputs, which the root module has as one object.
func (p *Parts) outputs(from stateOutput, to map[string]stateOutput) error {
	if len(from.Value) == 0 || bytes.Equal(from.Value, []byte("null")) {
		return nil
	}
	var values map[string]json.RawMessage
	var kind []json.RawMessage
	var types map[string]json.RawMessage
	if json.Unmarshal(from.Value, &values) != nil || json.Unmarshal(from.Type, &kind) != nil || len(kind) < 2 ||
		json.Unmarshal(kind[1], &types) != nil {
		return errors.New("reading the state of a batch: the outputs of a Machine are not an object")
	}
	for name, value := range values {
		_, sensitive := slices.BinarySearch(p.Sensitive, name)
		to[name] = stateOutput{Value: value, Type: types[name], Sensitive: sensitive}
	}
	return nil
}

// moveBack moves a resource out of the call for a Machine and returns the Machine's index.
func (l Layout) moveBack(resource map[string]json.RawMessage, numbers map[string]int) (int, error) {
	var call string
	if err := json.Unmarshal(resource["module"], &call); err != nil {
		return 0, errors.New("reading the state of a batch: a resource has an unexpected module")
	}
	n, ok := numbers[call]
	if !ok {
		return 0, errors.New("reading the state of a batch: it contains a resource that belongs to no Machine in the batch")
	}
	delete(resource, "module")
	return n, eachDependency(resource, func(address string) string {
		return strings.TrimPrefix(address, "module."+l.call(n)+".")
	})
}

// Unchanged reports whether a Machine's parts of two root module states are equal.
func Unchanged(one, other []byte) bool {
	return one != nil && other != nil && bytes.Equal(withoutSerial(one), withoutSerial(other))
}

// withoutSerial returns a state as Split writes it, without its serial.
func withoutSerial(raw []byte) []byte {
	from := bytes.Index(raw, []byte(`"serial":`))
	to := bytes.IndexByte(raw[max(from, 0):], ',')
	if from < 0 || to < 0 {
		return raw
	}
	return slices.Concat(raw[:from], raw[from+to:])
}

// PartOf returns the part of a root module's report about one Machine, as a report of the module
// alone.
func (l Layout) PartOf(report *engine.Report, n int) *engine.Report {
	part := report.ForModule(l.address(n))
	for i := range part.Diagnostics {
		part.Diagnostics[i].File = strings.TrimPrefix(part.Diagnostics[i].File, Folder+"/")
	}
	return part
}

// AddressOf returns the address of a Machine's resource in the state of the root module.
func (l Layout) AddressOf(address string, n int) string { return l.address(n) + "." + address }

// EventOf returns which Machine an event of the root module is about, and the event as seen from
// the module alone.
func (l Layout) EventOf(event engine.Event) (engine.Event, int, bool) {
	for n := range l.Machines {
		if inside, ok := event.ForModule(l.address(n)); ok {
			return inside, n, true
		}
	}
	return event, 0, false
}

// IsMarker reports whether an event is about a marker that says that a Machine is complete.
func IsMarker(event engine.Event) bool {
	return event.Kind == engine.EventCompleted && strings.HasPrefix(event.Address, markerType+".m")
}

// IsOwn reports whether a text that mentions no Machine is about the markers and pauses.
func IsOwn(text string) bool {
	return strings.Contains(text, markerType+".") || strings.Contains(text, dataType+".")
}

// Emptied returns the state after everything in it was destroyed, and how many objects that were.
func Emptied(raw []byte) (empty []byte, objects int, err error) {
	var one stateFile
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, 0, errors.New("reading a state failed")
	}
	for _, resource := range one.Resources {
		var instances []json.RawMessage
		if err := json.Unmarshal(resource["instances"], &instances); err != nil {
			return nil, 0, errors.New("reading a state: the instances of a resource have an unexpected format")
		}
		if string(resource["mode"]) == `"managed"` {
			objects += len(instances)
		}
	}
	one.Serial++
	one.Outputs, one.Resources = map[string]stateOutput{}, []map[string]json.RawMessage{}
	empty, err = json.Marshal(one)
	return empty, objects, err
}

// TextOf returns which Machine a text is about, and the text as seen from the module alone. It
// returns false if the text mentions no Machine.
func (l Layout) TextOf(text string) (string, int, bool) {
	for n := range l.Machines {
		if call := l.address(n) + "."; strings.Contains(text, call) {
			return strings.ReplaceAll(text, call, ""), n, true
		}
	}
	return text, 0, false
}
