package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

const stateVersion = 4

// Modes of a resource.
const (
	// ModeManaged is a resource that the engine created and must destroy.
	ModeManaged = "managed"
	// ModeData is a data source: nothing to destroy.
	ModeData = "data"
)

// State has the fields of a state that this project reads.
type State struct {
	// Format is FormatTerraform or FormatPulumi.
	Format string
	// Serial grows by one with each change.
	Serial uint64
	// Lineage is the same for all states of one Machine.
	Lineage string
	// EngineVersion is the version of the engine that wrote the state.
	EngineVersion string
	// Outputs of the root module, by name.
	Outputs map[string]Output
	// Resources in the engine's order.
	Resources []Resource
	// Unfinished are the URNs of resources whose create Pulumi had started at its last update. They may exist.
	Unfinished []string
}

// Output is one output of the root module.
type Output struct {
	// Value as JSON.
	Value json.RawMessage `json:"value"`
	// Type as the engine writes types in JSON.
	Type json.RawMessage `json:"type"`
	// Sensitive means that the value must not be shown.
	Sensitive bool `json:"sensitive"`
}

// String returns the value, unless it is sensitive.
func (o Output) String() string {
	if o.Sensitive {
		return "(sensitive)"
	}
	return string(o.Value)
}

// Resource is a resource in a state with all its instances.
type Resource struct {
	// Module is the address of the module instance, empty for the root.
	Module string
	// Mode is ModeManaged or ModeData.
	Mode string
	// Type of the resource.
	Type string
	// Name of the resource.
	Name string
	// Provider as the engine writes it.
	Provider string
	// Instances is the number of instances, deposed ones included.
	Instances int
	// Tainted is the number of instances that the engine would replace.
	Tainted int
	// Deposed is the number of instances that the engine would destroy.
	Deposed int
}

// Address returns the engine's address of the resource.
func (r Resource) Address() string {
	address := r.Type + "." + r.Name
	if r.Mode == ModeData {
		address = "data." + address
	}
	if r.Module != "" {
		address = r.Module + "." + address
	}
	return address
}

// Managed returns the existing resources that only a destroy removes.
func (s *State) Managed() []Resource {
	var managed []Resource
	for _, resource := range s.Resources {
		if resource.Mode != ModeData && resource.Instances > 0 {
			managed = append(managed, resource)
		}
	}
	return managed
}

type stateFile struct {
	Format        string             `json:"format"`
	Version       *int               `json:"version"`
	EngineVersion string             `json:"terraform_version"`
	Serial        *uint64            `json:"serial"`
	Lineage       string             `json:"lineage"`
	Outputs       map[string]Output  `json:"outputs"`
	Resources     []stateFileElement `json:"resources"`
}

type stateFileElement struct {
	Module    string `json:"module"`
	Mode      string `json:"mode"`
	Type      string `json:"type"`
	Name      string `json:"name"`
	Provider  string `json:"provider"`
	Instances []struct {
		Index      json.RawMessage `json:"index_key"`
		Status     string          `json:"status"`
		Deposed    string          `json:"deposed"`
		Attributes json.RawMessage `json:"attributes"`
	} `json:"instances"`
}

// Parse reads a state of version 4, or an encoded [Checkpoint]. It returns a *RefusedError with ReasonCorrupt for
// anything else.
func Parse(raw []byte) (*State, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, Malformed("it is empty")
	}
	if err := CheckSize(raw); err != nil {
		return nil, Malformed(err.Error())
	}
	var file stateFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	return formatOf(file.Format).parse(raw, &file)
}

func parseTerraform(_ []byte, file *stateFile) (*State, error) {
	switch {
	case file.Version == nil:
		return nil, Malformed("it has no version; encrypted states are not supported")
	case *file.Version != stateVersion:
		return nil, Malformed(fmt.Sprintf("it has version %d, not %d", *file.Version, stateVersion))
	case file.Serial == nil:
		return nil, Malformed("it has no serial")
	case file.Lineage == "":
		return nil, Malformed("it has no lineage")
	}
	if err := checkSerial(*file.Serial); err != nil {
		return nil, Malformed(err.Error())
	}
	parsed := &State{
		Serial:        *file.Serial,
		Lineage:       file.Lineage,
		EngineVersion: file.EngineVersion,
		Outputs:       file.Outputs,
	}
	for i, element := range file.Resources {
		if element.Type == "" || element.Name == "" || (element.Mode != ModeManaged && element.Mode != ModeData) {
			return nil, Malformed(fmt.Sprintf("resource %d has no type, no name or an unknown mode", i))
		}
		parsed.Resources = append(parsed.Resources, element.resource())
	}
	return parsed, nil
}

func (e stateFileElement) resource() Resource {
	resource := Resource{
		Module: e.Module, Mode: e.Mode, Type: e.Type, Name: e.Name, Provider: e.Provider, Instances: len(e.Instances),
	}
	for _, instance := range e.Instances {
		if instance.Status == "tainted" {
			resource.Tainted++
		}
		if instance.Deposed != "" {
			resource.Deposed++
		}
	}
	return resource
}

// WithSerial returns a state of any format with another serial. It may reorder fields.
func WithSerial(raw []byte, serial uint64) ([]byte, error) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	if file == nil {
		return nil, errors.New("the state is no object")
	}
	file["serial"] = fmt.Append(nil, serial)
	changed, err := json.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("encoding the state: %w", err)
	}
	return changed, nil
}
