package offline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Existing is an existing instance to plan a change of.
type Existing struct {
	// State is the engine's state, version 4, with the module as the root module.
	State []byte
	// Refresh configures the real providers, which plan and compare the state with the infrastructure.
	Refresh bool
	// Environment is the providers' environment, with credentials.
	Environment map[string]string
	// Files are credential files, keyed by the environment variable that carries the path.
	Files map[string]string
	// Sensitive are strings to hide.
	Sensitive []string
}

// stateFile has the fields of a state that are changed. All others are kept.
type stateFile struct {
	Version   int             `json:"version"`
	Resources []stateResource `json:"resources"`
}

type stateResource struct {
	Module    string                       `json:"module,omitempty"`
	Mode      string                       `json:"mode"`
	Type      string                       `json:"type"`
	Name      string                       `json:"name"`
	Each      string                       `json:"each,omitempty"`
	Provider  string                       `json:"provider"`
	Instances []map[string]json.RawMessage `json:"instances"`
}

func readState(raw []byte) (*stateFile, error) {
	read := &stateFile{}
	if err := json.Unmarshal(raw, read); err != nil {
		return nil, errors.New("reading the state: it is no JSON of the expected form") // the cause may quote secrets
	}
	if read.Version != stateVersion {
		return nil, fmt.Errorf("reading the state: its version is %d; %d is needed", read.Version, stateVersion)
	}
	return read, nil
}

// stateVersion is the version of the format since Terraform 0.12.
const stateVersion = 4

// mergedState merges the inputs' states into one of the root module, each under the call that plans it.
func (s *source) mergedState(inputs []Input, engineVersion string) ([]byte, error) {
	resources := []stateResource{}
	for n, in := range inputs {
		read, err := readState(in.Existing.State)
		if err != nil {
			return nil, err
		}
		for _, one := range read.Resources {
			moved, err := s.moved(one, "module."+callName(n))
			if err != nil {
				return nil, err
			}
			resources = append(resources, moved)
		}
	}
	return json.Marshal(map[string]any{
		"version": stateVersion, "terraform_version": engineVersion, "serial": 1, "lineage": "preview",
		"outputs": map[string]any{}, "resources": resources,
	})
}

var providerAddress = regexp.MustCompile(`^provider\["([^"]+)"\]`)

// moved returns a resource of the root module as one of a called module.
func (s *source) moved(one stateResource, call string) (stateResource, error) {
	one.Module = strings.TrimSuffix(call+"."+one.Module, ".")
	if match := providerAddress.FindStringSubmatch(one.Provider); match != nil && s.configured[path.Base(match[1])] {
		one.Provider = call + "." + one.Provider
	}
	for i, instance := range one.Instances {
		var dependencies []string
		if raw, ok := instance["dependencies"]; ok {
			if err := json.Unmarshal(raw, &dependencies); err != nil {
				return one, errors.New("reading the state: the dependencies of a resource are not of the expected form")
			}
		}
		for k := range dependencies {
			dependencies[k] = call + "." + dependencies[k]
		}
		raw, err := json.Marshal(dependencies)
		if err != nil {
			return one, fmt.Errorf("writing the state: %w", err)
		}
		changed := maps.Clone(instance)
		if changed["dependencies"] = raw; dependencies == nil {
			delete(changed, "dependencies")
		}
		one.Instances[i] = changed
	}
	return one, nil
}

func dataSourcesOf(raw []byte) ([]dataSource, error) {
	read, err := readState(raw)
	if err != nil {
		return nil, err
	}
	var found []dataSource
	for _, one := range read.Resources {
		if one.Mode != "data" {
			continue
		}
		for _, instance := range one.Instances {
			if values, ok := instance["attributes"]; ok {
				found = append(found, dataSource{Type: one.Type, Attributes: values})
			}
		}
	}
	return found, nil
}

// batchKey is equal for inputs that one engine may plan together: those without an instance, or those with the same
// data sources and access.
func batchKey(in Input) string {
	if in.Existing == nil {
		return ""
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%t\n", in.Existing.Refresh)
	for _, name := range slices.Sorted(maps.Keys(in.Existing.Environment)) {
		fmt.Fprintf(hash, "%q=%q\n", name, in.Existing.Environment[name])
	}
	for _, name := range slices.Sorted(maps.Keys(in.Existing.Files)) {
		fmt.Fprintf(hash, "%q in a file: %q\n", name, in.Existing.Files[name])
	}
	sources, err := dataSourcesOf(in.Existing.State)
	if err != nil {
		fmt.Fprintf(hash, "%s", in.Existing.State) // planned alone, and refused
	}
	for _, one := range sources {
		fmt.Fprintf(hash, "%s %s\n", one.Type, one.Attributes)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// batchesOf groups inputs, by index, into batches for that many concurrent engines.
func batchesOf(inputs []Input, engines int) [][]int {
	var order []string
	of := map[string][]int{}
	for n, in := range inputs {
		key := batchKey(in)
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], n)
	}
	size := min(maxCalls, (len(inputs)+engines-1)/engines)
	var batches [][]int
	for _, key := range order {
		batches = slices.AppendSeq(batches, slices.Chunk(of[key], size))
	}
	return batches
}

// later reports whether data sources wait for an apply.
func (in Input) later() bool { return in.Existing == nil || in.putOff }
