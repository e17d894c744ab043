package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// values is the variable of the root module with the variables of all Machines.
const values = "machine_iac_values"

// nameOf returns the name of a Machine in the root module: its key and its output.
func nameOf(n int) string { return fmt.Sprintf("m%d", n) }

// Layout is how the Machines of a batch share calls of the module in the root module.
type Layout struct {
	Machines int
	perCall  int
}

// maxCalls bounds the calls of Apart.
const maxCalls = 25

// Together is one call for all Machines, which is the cheapest. An engine goes on to the next
// resource of one Machine when it has done with the last of all.
func Together(machines int) Layout { return Layout{machines, machines} }

// Apart is a call for each Machine, so that a slow or failing one holds up no other; of more than 25
// Machines, several share one. 78 calls cost an engine twice what 20 do.
func Apart(machines int) Layout { return Layout{machines, (machines + maxCalls - 1) / maxCalls} }

// Calls returns the names of the calls.
func (l Layout) Calls() (names []string) {
	for n := 0; n < l.Machines; n += l.perCall {
		names = append(names, l.call(n))
	}
	return names
}

// call returns the name of the call for a Machine.
func (l Layout) call(n int) string { return fmt.Sprintf("call%d", n/l.perCall) }

// address returns the address of the call for a Machine.
func (l Layout) address(n int) string { return fmt.Sprintf("module.%s[%q]", l.call(n), nameOf(n)) }

// markerType is the resource of the root module that says that a Machine's call is complete, and
// holds its outputs: engines write those of a root module at the end only. dataType is what the
// engine reads to pause.
const markerType, dataType = "terraform_data", "terraform_remote_state"

// pauses is how often an engine can be made to write its state while instances are awaited.
const pauses = 16

// Root returns the HCL of a root module that calls the module for the Machines. The output
// of each is an object with the module's outputs, except null ones, which a state does not contain.
func (m *Module) Root(l Layout) []byte {
	var out bytes.Buffer
	m.calls(&out, l)
	for n := range l.Machines {
		fmt.Fprintf(&out, "output %q {\n  value     = %s\n  sensitive = true\n}\n", nameOf(n), l.outputs(n))
	}
	return out.Bytes()
}

// RootToApply returns the HCL of a root module that creates the Machines. Its state tells which are
// complete while others are not, see [Parts.SplitComplete]. An engine writes its state when a
// resource changes, but not within 20 seconds of the last time. So it reads the HTTP backend at
// pause repeatedly: whoever serves it answers when there is something to write.
func (m *Module) RootToApply(l Layout, pause string) []byte {
	var out bytes.Buffer
	m.calls(&out, l)
	for n := range l.Machines {
		fmt.Fprintf(&out, "resource %q %q {\n  input      = %s\n  depends_on = [module.%s]\n}\n",
			markerType, nameOf(n), l.outputs(n), l.call(n))
	}
	after := markerType + ".begun"
	fmt.Fprintf(&out, "resource %q \"begun\" {}\n", markerType)
	for n := range pauses {
		fmt.Fprintf(&out, "data %q \"pause%d\" {\n  backend    = \"http\"\n", dataType, n)
		fmt.Fprintf(&out, "  config     = { address = %q }\n  depends_on = [%s]\n}\n", pause, after)
		after = fmt.Sprintf("%s.begun, data.%s.pause%d", markerType, dataType, n)
	}
	return out.Bytes()
}

// calls writes what the root modules have in common.
func (m *Module) calls(out *bytes.Buffer, l Layout) {
	out.Write(m.settings)
	out.Write(m.providers)
	if len(m.needs) > 0 {
		out.Write(m.declarations)
	}
	fmt.Fprintf(out, "variable %q {\n  type = any\n}\n", values)
	for first := 0; first < l.Machines; first += l.perCall {
		var keys []string
		for n := first; n < min(l.Machines, first+l.perCall); n++ {
			keys = append(keys, strconv.Quote(nameOf(n)))
		}
		fmt.Fprintf(out, "module %q {\n  source = \"./%s\"\n  for_each = toset([%s])\n", l.call(first), Folder,
			strings.Join(keys, ", "))
		for _, name := range m.variables {
			fmt.Fprintf(out, "  %s = var.%s[each.key].%s\n", name, values, name)
		}
		out.WriteString("}\n")
	}
}

func (l Layout) outputs(n int) string {
	return fmt.Sprintf("{ for name, value in %s : name => value if value != null }", l.address(n))
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

// Clean reports for each Machine whether a plan of the root module found it unchanged: no planned
// change of a resource or output, no missing resource, and no diagnostics. It returns nil if
// anything reported belongs to no Machine, since nothing is certain then.
func (l Layout) Clean(report *engine.Report) []bool {
	clean := make([]bool, l.Machines)
	changes, drift, diagnostics := len(report.Changes), len(report.Drift), len(report.Diagnostics)
	if report.Text != "" || report.Unknown > 0 || len(report.Outputs) != l.Machines {
		return nil
	}
	for n := range l.Machines {
		part := report.ForModule(l.address(n))
		if part.Planned.Operation == "" {
			return nil
		}
		changes, drift, diagnostics = changes-len(part.Changes), drift-len(part.Drift), diagnostics-len(part.Diagnostics)
		clean[n] = part.NoChange() && len(part.Missing())+len(part.Diagnostics) == 0 &&
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
func (l Layout) State(machines [][]byte) ([]byte, error) {
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
			if err := l.move(resource, n); err != nil {
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
func (l Layout) move(resource map[string]json.RawMessage, n int) error {
	if _, ok := resource["module"]; ok {
		return errors.New("reading a state: it contains a resource of a child module")
	}
	inside := func(address string) string { return "module." + l.call(n) + "." + address }
	if err := eachDependency(resource, inside); err != nil {
		return err
	}
	var err error
	resource["module"], err = json.Marshal(l.address(n))
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
