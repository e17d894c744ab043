package inspect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// State is the content of a state for people and programs: what its resources are like, without what the engine keeps for itself.
type State struct {
	Namespace string `json:"namespace"`
	Machine   string `json:"machine,omitempty"`
	Secret    string `json:"secret"`
	Serial    uint64 `json:"serial"`
	Lineage   string `json:"lineage,omitempty"`
	// Engine is the version of the engine that wrote it.
	Engine    string         `json:"engineVersion,omitempty"`
	Module    string         `json:"module,omitempty"`
	Resources []Resource     `json:"resources"`
	Outputs   map[string]any `json:"outputs"`
}

// Resource is one instance of a resource.
type Resource struct {
	Address string `json:"address"`
	// Status is tainted or deposed where the engine means to replace or destroy it.
	Status     string         `json:"status,omitempty"`
	Provider   string         `json:"provider"`
	Attributes map[string]any `json:"attributes"`
}

// stateFile is a state of version 4, as far as it is shown.
type stateFile struct {
	// Format is empty; a state of another engine has one.
	Format  string `json:"format"`
	Engine  string `json:"terraform_version"`
	Outputs map[string]struct {
		Value     any  `json:"value"`
		Sensitive bool `json:"sensitive"`
	} `json:"outputs"`
	Resources []struct {
		Module    string `json:"module"`
		Mode      string `json:"mode"`
		Type      string `json:"type"`
		Name      string `json:"name"`
		Provider  string `json:"provider"`
		Instances []struct {
			IndexKey   any             `json:"index_key"`
			Status     string          `json:"status"`
			Deposed    string          `json:"deposed"`
			Attributes map[string]any  `json:"attributes"`
			Sensitive  json.RawMessage `json:"sensitive_attributes"`
		} `json:"instances"`
	} `json:"resources"`
}

// readers has, by format, what reads a state that is not one of Terraform's.
var readers = map[string]func(into *State, raw []byte, sensitive bool) error{
	statefile.FormatPulumi: (*State).fillCheckpoint,
}

// NewState returns the content of a state. Sensitive values are masked unless they are wanted.
func NewState(snapshot *state.Snapshot, sensitive bool) (*State, error) {
	shown := &State{
		Namespace: snapshot.Key.Namespace, Secret: snapshot.Key.Name, Machine: snapshot.Meta[metaMachine], Serial: snapshot.Serial, Lineage: snapshot.Lineage,
		Module: record.ModuleIn(snapshot.Meta), Resources: []Resource{}, Outputs: map[string]any{},
	}
	if snapshot.Raw == nil {
		return shown, nil
	}
	var file stateFile
	decoder := json.NewDecoder(bytes.NewReader(snapshot.Raw))
	decoder.UseNumber()
	if err := decoder.Decode(&file); err != nil {
		// The decoder's own words may repeat what is in the state.
		return nil, fmt.Errorf("reading state %s: it is not as states of version 4 are; 'kubectl machine state pull' prints it as it is", snapshot.Key)
	}
	if read, ok := readers[file.Format]; ok {
		if err := read(shown, snapshot.Raw, sensitive); err != nil {
			return nil, fmt.Errorf("reading state %s: %w", snapshot.Key, err)
		}
		return shown, nil
	}
	shown.Engine = file.Engine
	shown.fill(&file, sensitive)
	return shown, nil
}

func (s *State) fill(file *stateFile, sensitive bool) {
	hidden := &mask{}
	for name, output := range file.Outputs {
		s.Outputs[name] = output.Value
		if output.Sensitive && !sensitive {
			s.Outputs[name] = hidden.hide(output.Value)
		}
	}
	for _, resource := range file.Resources {
		address := statefile.Resource{Module: resource.Module, Mode: resource.Mode, Type: resource.Type, Name: resource.Name}.Address()
		for _, instance := range resource.Instances {
			one := Resource{Address: address + index(instance.IndexKey), Provider: providerOf(resource.Provider), Status: instance.Status, Attributes: instance.Attributes}
			if instance.Deposed != "" {
				one.Status = "deposed"
			}
			if resource.Type == "terraform_data" {
				one.Attributes = plain(one.Attributes)
			}
			if !sensitive {
				one.Attributes = hidden.attributes(one.Attributes, instance.Sensitive)
			}
			s.Resources = append(s.Resources, one)
		}
	}
	hidden.copies(s)
}

// plain takes the values of terraform_data out of the types that the state has around them.
func plain(attributes map[string]any) map[string]any {
	unwrapped := map[string]any{}
	for name, value := range attributes {
		typed, ok := value.(map[string]any)
		if _, hasType := typed["type"]; ok && hasType && len(typed) == 2 {
			value = typed["value"]
		}
		unwrapped[name] = value
	}
	return unwrapped
}

// index is that of an instance of a resource that there are several of.
func index(key any) string {
	switch key := key.(type) {
	case nil:
		return ""
	case string:
		return "[" + strconv.Quote(key) + "]"
	}
	return fmt.Sprintf("[%v]", key)
}

// providerOf takes a provider's address out of what engines write around it.
func providerOf(written string) string {
	if _, address, ok := strings.Cut(written, `"`); ok {
		return strings.TrimSuffix(address, `"]`)
	}
	return written
}

// Objects implements print.Report.
func (s *State) Objects() []metav1.PartialObjectMetadata {
	return []metav1.PartialObjectMetadata{print.MachineReference(s.Namespace, s.Machine)}
}

// Text prints the state for people.
func (s *State) Text(bool, bool) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Machine %s/%s, Secret %s\n", s.Namespace, cmp.Or(s.Machine, "-"), s.Secret)
	fmt.Fprintf(&out, "Serial %d, module %s, written by version %s of the engine\n", s.Serial, cmp.Or(print.Short(s.Module), "-"), cmp.Or(s.Engine, "-"))
	for _, resource := range s.Resources {
		status := ""
		if resource.Status != "" {
			status = ", " + resource.Status
		}
		fmt.Fprintf(&out, "\n%s (%s%s)\n", print.OneLine(resource.Address), print.OneLine(cmp.Or(resource.Provider, "-")), print.OneLine(status))
		lines(&out, "", resource.Attributes)
	}
	fmt.Fprint(&out, "\nOutputs\n")
	lines(&out, "", s.Outputs)
	return out.Bytes()
}

// lines prints each value that is not empty behind its path.
func lines(out *bytes.Buffer, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := key
			if path != "" {
				below = path + "." + key
			}
			lines(out, below, value[key])
		}
	case []any:
		for i, element := range value {
			lines(out, fmt.Sprintf("%s[%d]", path, i), element)
		}
	case nil:
	case string:
		if value == Masked {
			fmt.Fprintf(out, "  %s = %s\n", print.OneLine(path), value)
		} else if value != "" {
			fmt.Fprintf(out, "  %s = %s\n", print.OneLine(path), strconv.Quote(value))
		}
	default:
		fmt.Fprintf(out, "  %s = %v\n", print.OneLine(path), value)
	}
}
