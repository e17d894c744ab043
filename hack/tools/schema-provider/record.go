package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// records are outputs of `providers schema -json`, cut to what modules use.
//
//go:embed schemas/*.json
var records embed.FS

var binaryName = regexp.MustCompile(`^terraform-provider-([a-z0-9-]+)_v([0-9.]+)(\.exe)?$`)

// recordOf returns the record that a binary of this name serves.
func recordOf(binary string) (name, version string, err error) {
	parts := binaryName.FindStringSubmatch(binary)
	if parts == nil {
		return "", "", fmt.Errorf("the name %q stands for no record; call the binary terraform-provider-NAME_vVERSION", binary)
	}
	return parts[1], parts[2], nil
}

// providerSchema is what a provider serves.
type providerSchema struct {
	// Address is the provider's source, with the registry's name.
	Address     string
	Provider    *tfprotov5.Schema
	Resources   map[string]*tfprotov5.Schema
	DataSources map[string]*tfprotov5.Schema
}

func readRecord(name, version string) (*providerSchema, error) {
	file := "schemas/" + name + "-" + version + ".json"
	content, err := records.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("finding the record of %s %s: %w; the README says how one is made", name, version, err)
	}
	schema, err := parseRecord(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return schema, nil
}

// parseRecord reads the record of one provider.
func parseRecord(content []byte) (*providerSchema, error) {
	var document recordedDocument
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	addresses := slices.Collect(maps.Keys(document.Providers))
	if len(addresses) != 1 {
		return nil, fmt.Errorf("it describes %d providers; a record is of one", len(addresses))
	}
	recorded := document.Providers[addresses[0]]
	schema := &providerSchema{Address: addresses[0]}
	var errs []error
	var err error
	if schema.Provider, err = recorded.Provider.schema(); err != nil {
		errs = append(errs, fmt.Errorf("provider: %w", err))
	}
	if schema.Resources, err = schemas(recorded.Resources); err != nil {
		errs = append(errs, err)
	}
	if schema.DataSources, err = schemas(recorded.DataSources); err != nil {
		errs = append(errs, err)
	}
	return schema, errors.Join(errs...)
}

// recordedDocument is the output of `providers schema -json`, as far as it is used.
type recordedDocument struct {
	FormatVersion string                      `json:"format_version"`
	Providers     map[string]recordedProvider `json:"provider_schemas"`
}

type recordedProvider struct {
	Provider    recordedSchema            `json:"provider"`
	Resources   map[string]recordedSchema `json:"resource_schemas"`
	DataSources map[string]recordedSchema `json:"data_source_schemas"`
}

type recordedSchema struct {
	Version int64         `json:"version"`
	Block   recordedBlock `json:"block"`
}

type recordedBlock struct {
	Attributes map[string]recordedAttribute `json:"attributes,omitempty"`
	Blocks     map[string]recordedNested    `json:"block_types,omitempty"`
	Deprecated bool                         `json:"deprecated,omitempty"`
}

type recordedAttribute struct {
	Type      json.RawMessage `json:"type,omitempty"`
	Required  bool            `json:"required,omitempty"`
	Optional  bool            `json:"optional,omitempty"`
	Computed  bool            `json:"computed,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"`
	WriteOnly bool            `json:"write_only,omitempty"`
	// Deprecated is shown as a warning.
	Deprecated bool `json:"deprecated,omitempty"`
}

type recordedNested struct {
	Nesting  string        `json:"nesting_mode"`
	Block    recordedBlock `json:"block"`
	MinItems int64         `json:"min_items,omitempty"`
	MaxItems int64         `json:"max_items,omitempty"`
}

func schemas(recorded map[string]recordedSchema) (map[string]*tfprotov5.Schema, error) {
	read := make(map[string]*tfprotov5.Schema, len(recorded))
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		schema, err := recorded[name].schema()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		read[name] = schema
	}
	return read, nil
}

func (s recordedSchema) schema() (*tfprotov5.Schema, error) {
	block, err := s.Block.block()
	return &tfprotov5.Schema{Version: s.Version, Block: block}, err
}

func (b recordedBlock) block() (*tfprotov5.SchemaBlock, error) {
	block := &tfprotov5.SchemaBlock{Deprecated: b.Deprecated}
	for _, name := range slices.Sorted(maps.Keys(b.Attributes)) {
		recorded := b.Attributes[name]
		if recorded.Type == nil {
			return nil, fmt.Errorf("%s: it has no type; attributes with attributes of their own need protocol 6, which is not served", name)
		}
		kind, err := tftypes.ParseJSONType(recorded.Type) //nolint:staticcheck // Deprecated for providers; this is what reads such types.
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		block.Attributes = append(block.Attributes, &tfprotov5.SchemaAttribute{
			Name: name, Type: kind, Required: recorded.Required, Optional: recorded.Optional, Computed: recorded.Computed,
			Sensitive: recorded.Sensitive, WriteOnly: recorded.WriteOnly, Deprecated: recorded.Deprecated,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(b.Blocks)) {
		recorded := b.Blocks[name]
		nesting, known := nestings[recorded.Nesting]
		if !known {
			return nil, fmt.Errorf("%s: the nesting %q is not known", name, recorded.Nesting)
		}
		nested, err := recorded.Block.block()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		block.BlockTypes = append(block.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: name, Block: nested, Nesting: nesting, MinItems: recorded.MinItems, MaxItems: recorded.MaxItems,
		})
	}
	return block, nil
}

var nestings = map[string]tfprotov5.SchemaNestedBlockNestingMode{
	"single": tfprotov5.SchemaNestedBlockNestingModeSingle,
	"list":   tfprotov5.SchemaNestedBlockNestingModeList,
	"set":    tfprotov5.SchemaNestedBlockNestingModeSet,
	"map":    tfprotov5.SchemaNestedBlockNestingModeMap,
	"group":  tfprotov5.SchemaNestedBlockNestingModeGroup,
}
