package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// Parts is what the states of a batch's Machines have beside what an engine writes into that of the root module. It holds no secrets, and is kept with a
// run whose engine changes something.
type Parts struct {
	// Sensitive are the module's outputs that are sensitive, sorted.
	Sensitive []string `json:"sensitive,omitempty"`
	Machines  []Part   `json:"machines"`
}

// Part is that of one Machine.
type Part struct {
	// Run is the id of the Machine's own run, Identity whose it is.
	Run      string          `json:"run"`
	Identity json.RawMessage `json:"identity,omitempty"`
	// Lineage is that of the Machine's states, and Serial what the batch began with; zero for a Machine without a state.
	Lineage string `json:"lineage"`
	Serial  uint64 `json:"serial"`
}

// Parts returns what the states of Machines that use the module are made of. stored is the state that each has, or nil; one without has the Lineage that its part is
// given with.
func (m *Module) Parts(machines []Part, stored [][]byte) (*Parts, error) {
	for n, raw := range stored {
		if raw == nil {
			continue
		}
		var one stateFile
		if err := json.Unmarshal(raw, &one); err != nil || one.Lineage == "" {
			return nil, errors.New("reading a state: it has no lineage") // the error of JSON may have something of it
		}
		machines[n].Lineage, machines[n].Serial = one.Lineage, one.Serial
	}
	return &Parts{Sensitive: m.sensitive, Machines: machines}, nil
}

// Split returns the states of the Machines for one of the root module. What is the same in two states of the root module is byte for byte the same in
// those of a Machine, but for the serial.
func (p *Parts) Split(raw []byte) ([][]byte, error) {
	var whole stateFile
	if err := json.Unmarshal(raw, &whole); err != nil || whole.Version != stateVersion {
		return nil, fmt.Errorf("reading the state of a batch: it is none of version %d", stateVersion)
	}
	machines := make([]stateFile, len(p.Machines))
	numbers := map[string]int{}
	for n, part := range p.Machines {
		machines[n] = stateFile{
			Version: stateVersion, Engine: whole.Engine, Serial: part.Serial + whole.Serial, Lineage: part.Lineage,
			Outputs: map[string]stateOutput{}, Resources: []map[string]json.RawMessage{},
		}
		numbers[callOf(n)] = n
		if err := p.outputs(whole.Outputs[nameOf(n)], machines[n].Outputs); err != nil {
			return nil, err
		}
	}
	for _, resource := range whole.Resources {
		n, err := p.moveBack(resource, numbers)
		if err != nil {
			return nil, err
		}
		machines[n].Resources = append(machines[n].Resources, resource)
	}
	split := make([][]byte, len(machines))
	for n, one := range machines {
		var err error
		if split[n], err = json.Marshal(one); err != nil {
			return nil, errors.New("writing the state of a Machine failed")
		}
	}
	return split, nil
}

// outputs adds a Machine's outputs, for those that the root module has as one.
func (p *Parts) outputs(from stateOutput, to map[string]stateOutput) error {
	if len(from.Value) == 0 || bytes.Equal(from.Value, []byte("null")) {
		return nil
	}
	var values map[string]json.RawMessage
	var kind []json.RawMessage
	var types map[string]json.RawMessage
	if json.Unmarshal(from.Value, &values) != nil || json.Unmarshal(from.Type, &kind) != nil || len(kind) < 2 || json.Unmarshal(kind[1], &types) != nil {
		return errors.New("reading the state of a batch: the outputs of a Machine are no object")
	}
	for name, value := range values {
		_, sensitive := slices.BinarySearch(p.Sensitive, name)
		to[name] = stateOutput{Value: value, Type: types[name], Sensitive: sensitive}
	}
	return nil
}

// moveBack moves a resource out of the call for a Machine, and returns which Machine's that is.
func (p *Parts) moveBack(resource map[string]json.RawMessage, numbers map[string]int) (int, error) {
	var call string
	if err := json.Unmarshal(resource["module"], &call); err != nil {
		return 0, errors.New("reading the state of a batch: it has a resource of the root module")
	}
	n, ok := numbers[call]
	if !ok {
		return 0, errors.New("reading the state of a batch: it has a resource of no Machine")
	}
	delete(resource, "module")
	return n, eachDependency(resource, func(address string) string { return strings.TrimPrefix(address, callAddress) })
}

// Unchanged reports whether a Machine's part of two states of the root module is the same.
func Unchanged(one, other []byte) bool {
	return one != nil && other != nil && bytes.Equal(withoutSerial(one), withoutSerial(other))
}

// withoutSerial returns a state as Split writes it without its serial.
func withoutSerial(raw []byte) []byte {
	from := bytes.Index(raw, []byte(`"serial":`))
	to := bytes.IndexByte(raw[max(from, 0):], ',')
	if from < 0 || to < 0 {
		return raw
	}
	return slices.Concat(raw[:from], raw[from+to:])
}

// PartOf returns what a report of the root module says of a Machine, as a report of the module alone would say it.
func PartOf(report *engine.Report, n int) *engine.Report {
	part := report.ForModule(callOf(n))
	for i := range part.Diagnostics {
		part.Diagnostics[i].File = strings.TrimPrefix(part.Diagnostics[i].File, Folder+"/")
	}
	return part
}

// AddressOf returns the address that a resource of the module has in the state of the root module, for a Machine.
func AddressOf(address string, n int) string { return callOf(n) + "." + address }

// EventOf returns which of so many Machines an event of the root module is about, and the event as the module alone would have it.
func EventOf(event engine.Event, count int) (engine.Event, int, bool) {
	for n := range count {
		if inside, ok := event.ForModule(callOf(n)); ok {
			return inside, n, true
		}
	}
	return event, 0, false
}

// TextOf returns which of so many Machines a text is about, and the text as the module alone would have it. It reports false for what names none.
func TextOf(text string, count int) (string, int, bool) {
	for n := range count {
		if call := callOf(n) + "."; strings.Contains(text, call) {
			return strings.ReplaceAll(text, call, ""), n, true
		}
	}
	return text, 0, false
}
