package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// values is the variable of the root module with the variables of all Machines.
const values = "machine_iac_values"

// nameOf returns the name of a Machine in the root module: its key and its output.
func nameOf(n int) string { return fmt.Sprintf("m%d", n) }

// callAddress starts the address of a dependency, whichever Machine's it is.
const callAddress = "module.machine."

// callOf returns the address of the module call for a Machine.
func callOf(n int) string { return fmt.Sprintf("module.machine[%q]", nameOf(n)) }

// Root returns the HCL of a root module that calls the module for count Machines. A single call
// with for_each makes the engine read the module once. The output of each Machine is an object with
// the module's outputs, except null ones, which a state does not contain.
func (m *Module) Root(count int) []byte {
	var out bytes.Buffer
	out.Write(m.settings)
	out.Write(m.providers)
	if len(m.needs) > 0 {
		out.Write(m.declarations)
	}
	names := make([]string, 0, count)
	for n := range count {
		names = append(names, fmt.Sprintf("%q", nameOf(n)))
	}
	fmt.Fprintf(&out, "variable %q {\n  type = any\n}\n", values)
	fmt.Fprintf(&out, "module \"machine\" {\n  source   = \"./%s\"\n  for_each = toset([%s])\n", Folder,
		strings.Join(names, ", "))
	for _, name := range m.variables {
		fmt.Fprintf(&out, "  %s = var.%s[each.key].%s\n", name, values, name)
	}
	out.WriteString("}\n")
	for n := range count {
		fmt.Fprintf(&out,
			"output %q {\n  value     = { for name, value in %s : name => value if value != null }\n  sensitive = true\n}\n",
			nameOf(n), callOf(n))
	}
	return out.Bytes()
}

// Variables returns the variables of the root module. Providers use those of the first Machine.
func (m *Module) Variables(machines [][]byte) ([]byte, error) {
	all, root := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for n, variables := range machines {
		given, err := readVariables(variables)
		if err != nil {
			return nil, err
		}
		for _, name := range m.variables { // null does not select the default
			if _, ok := given[name]; !ok {
				return nil, fmt.Errorf("no value for variable %s", name)
			}
		}
		if all[nameOf(n)], err = json.Marshal(given); err != nil {
			return nil, errors.New("writing the variables failed")
		}
		if n > 0 || len(m.needs) == 0 {
			continue
		}
		for _, name := range m.variables {
			root[name] = given[name]
		}
	}
	var err error
	if root[values], err = json.Marshal(all); err != nil {
		return nil, errors.New("writing the variables failed")
	}
	return json.Marshal(root)
}

// Clean reports for each of count Machines whether a plan of the root module found it unchanged: no
// planned change or drift of a resource or output, and no diagnostics. It returns nil if anything
// reported belongs to no Machine, since nothing is certain then.
func Clean(report *engine.Report, count int) []bool {
	clean := make([]bool, count)
	changes, drift, diagnostics := len(report.Changes), len(report.Drift), len(report.Diagnostics)
	if report.Text != "" || report.Unknown > 0 || len(report.Outputs) != count {
		return nil
	}
	for n := range count {
		part := report.ForModule(callOf(n))
		if part.Planned.Operation == "" {
			return nil
		}
		changes, drift, diagnostics = changes-len(part.Changes), drift-len(part.Drift), diagnostics-len(part.Diagnostics)
		clean[n] = part.NoChange() && len(part.Drift)+len(part.Diagnostics) == 0 &&
			report.Outputs[nameOf(n)].Action == engine.ActionNoOp
	}
	if changes+drift+diagnostics > 0 {
		return nil
	}
	return clean
}

// lineage is the lineage of a root module's state that is built from Machines' states.
const lineage = "batch"

// stateVersion is the version of the format since Terraform 0.12.
const stateVersion = 4

// stateFile is the part of a state that is merged into another.
type stateFile struct {
	Version   int                          `json:"version"`
	Engine    string                       `json:"terraform_version"`
	Serial    uint64                       `json:"serial"`
	Lineage   string                       `json:"lineage"`
	Outputs   map[string]stateOutput       `json:"outputs"`
	Resources []map[string]json.RawMessage `json:"resources"`
}

type stateOutput struct {
	Value     json.RawMessage `json:"value"`
	Type      json.RawMessage `json:"type"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

// State returns the state of the root module for the states of the Machines, some of which may be
// nil. It returns nil if all are.
func State(machines [][]byte) ([]byte, error) {
	merged := stateFile{Version: stateVersion, Serial: 1, Lineage: lineage, Outputs: map[string]stateOutput{},
		Resources: []map[string]json.RawMessage{}}
	newest := version.Must(version.NewVersion("0.0.0"))
	for n, raw := range machines {
		if raw == nil {
			continue
		}
		var one stateFile
		if err := json.Unmarshal(raw, &one); err != nil || one.Version != stateVersion {
			return nil, fmt.Errorf("reading a state: unsupported version, must be %d",
				stateVersion) // no wrapped error: it may contain secrets
		}
		by, err := version.NewVersion(one.Engine)
		if err != nil {
			return nil, errors.New("reading a state: it has no engine version")
		}
		if by.GreaterThan(newest) {
			newest, merged.Engine = by, one.Engine // engines reject states of newer versions
		}
		if merged.Outputs[nameOf(n)], err = objectOf(one.Outputs); err != nil {
			return nil, err
		}
		for _, resource := range one.Resources {
			if err := move(resource, n); err != nil {
				return nil, err
			}
			merged.Resources = append(merged.Resources, resource)
		}
	}
	if merged.Engine == "" {
		return nil, nil
	}
	return json.Marshal(merged)
}

// objectOf returns the outputs of a Machine as one object.
func objectOf(outputs map[string]stateOutput) (stateOutput, error) {
	all, types := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for name, output := range outputs {
		all[name], types[name] = output.Value, output.Type
	}
	value, err := json.Marshal(all)
	if err != nil {
		return stateOutput{}, errors.New("reading a state: an output has no value")
	}
	kind, err := json.Marshal([]any{"object", types})
	if err != nil {
		return stateOutput{}, errors.New("reading a state: an output has no type")
	}
	return stateOutput{Value: value, Type: kind, Sensitive: true}, nil
}

// move moves a resource of a root module into the call for a Machine.
func move(resource map[string]json.RawMessage, n int) error {
	if _, ok := resource["module"]; ok {
		return errors.New("reading a state: it contains a resource of a child module")
	}
	if err := eachDependency(resource, func(address string) string { return callAddress + address }); err != nil {
		return err
	}
	var err error
	resource["module"], err = json.Marshal(callOf(n))
	return err
}

// eachDependency renames the dependencies of a resource's instances.
func eachDependency(resource map[string]json.RawMessage, rename func(string) string) error {
	var instances []map[string]json.RawMessage
	if err := json.Unmarshal(resource["instances"], &instances); err != nil {
		return errors.New("reading a state: the instances of a resource have an unexpected format")
	}
	for _, instance := range instances {
		var dependencies []string
		if raw, ok := instance["dependencies"]; !ok {
			continue
		} else if err := json.Unmarshal(raw, &dependencies); err != nil {
			return errors.New("reading a state: the dependencies of a resource have an unexpected format")
		}
		for i := range dependencies {
			dependencies[i] = rename(dependencies[i])
		}
		var err error
		if instance["dependencies"], err = json.Marshal(dependencies); err != nil {
			return fmt.Errorf("writing a state: %w", err)
		}
	}
	var err error
	if resource["instances"], err = json.Marshal(instances); err != nil {
		return fmt.Errorf("writing a state: %w", err)
	}
	return nil
}
