package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Default is a field of the providerSpec that is filled in.
type Default struct {
	// Path is the field, its parts joined by dots.
	Path string
	// Unless are paths of fields, any of which keeps the value from being filled in.
	Unless []string
	value  any
	// byArchitecture holds what takes the place of value.
	byArchitecture map[string]any
}

// Defaults answers the fields of the providerSpec that module.yaml says are filled in, in its order. The caller must not change them.
func (m *Module) Defaults() []Default { return m.defaults }

// Value returns what is filled in, as decoded JSON with numbers as json.Number, or the names of the cluster's values that it lacks.
func (d Default) Value(cluster ClusterValues) (value any, missing []string) {
	value = d.value
	if other, given := d.byArchitecture[cluster[ValueArchitecture]]; given {
		value = other
	}
	filled, err := fillIn(value, func(name string) (string, error) {
		if cluster[name] == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return cluster[name], nil
	})
	if err != nil || len(missing) > 0 {
		return nil, missing // braces are seen to when the module is loaded
	}
	return filled, nil
}

// fillIn returns a copy of decoded JSON with values in place of their names in braces, in every text but keys.
func fillIn(value any, lookup func(name string) (string, error)) (any, error) {
	switch value := value.(type) {
	case string:
		return ExpandKey(value, lookup)
	case []any:
		items := make([]any, 0, len(value))
		for _, item := range value {
			filled, err := fillIn(item, lookup)
			if err != nil {
				return nil, err
			}
			items = append(items, filled)
		}
		return items, nil
	case map[string]any:
		fields := map[string]any{}
		for name, inner := range value {
			filled, err := fillIn(inner, lookup)
			if err != nil {
				return nil, err
			}
			fields[name] = filled
		}
		return fields, nil
	default:
		return value, nil
	}
}

// readDefaults answers the defaults of module.yaml that can be used, and reports what is wrong with the others.
func readDefaults(meta *metadata, providerSpec Variable) []Default {
	var read []Default
	for i, written := range meta.Spec.Defaults {
		c := defaultCheck{metadata: meta, at: fmt.Sprintf("spec.defaults[%d]", i), providerSpec: providerSpec.Type, sound: true}
		one := c.read(written)
		for _, other := range read {
			if one.Path == other.Path || strings.HasPrefix(one.Path, other.Path+".") || strings.HasPrefix(other.Path, one.Path+".") {
				c.breach("path", fmt.Sprintf("is %q, which the default of %q fills in as well", one.Path, other.Path), "keep one")
			}
		}
		if c.sound {
			read = append(read, one)
		}
	}
	return read
}

// defaultCheck holds one default to the type of the providerSpec.
type defaultCheck struct {
	*metadata
	at           string
	providerSpec cty.Type
	sound        bool
}

func (c *defaultCheck) breach(field, problem, fix string) {
	c.sound = false
	c.metadata.breach(c.at+"."+field, problem, fix)
}

func (c *defaultCheck) read(written v1alpha1.ModuleDefault) Default {
	read := Default{Path: written.Path, Unless: written.Unless, byArchitecture: map[string]any{}}
	const fix = "name a field, its parts joined by dots"
	wanted, exists := fieldType(c.providerSpec, written.Path)
	if !exists {
		c.breach("path", fmt.Sprintf("is %q, which is no field of var.provider_spec", written.Path), fix)
	}
	for i, path := range written.Unless {
		if _, exists := fieldType(c.providerSpec, path); !exists {
			c.breach(fmt.Sprintf("unless[%d]", i), fmt.Sprintf("is %q, which is no field of var.provider_spec", path), fix)
		}
	}
	read.value = c.value("value", written.Value.Raw, wanted)
	for _, architecture := range slices.Sorted(maps.Keys(written.ByArchitecture)) {
		read.byArchitecture[architecture] = c.value("byArchitecture."+architecture, written.ByArchitecture[architecture].Raw, wanted)
	}
	return read
}

// value decodes a value and holds it to the type that is wanted, if that is known.
func (c *defaultCheck) value(field string, raw []byte, wanted cty.Type) any {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || IsUnset(value) {
		c.breach(field, `is missing, or is null, "" or [], which fills in nothing`, "write a value, or leave the default out")
		return nil
	}
	example, err := fillIn(value, func(name string) (string, error) {
		if !isClusterValue(name) {
			return "", fmt.Errorf("uses {%s}, which is no value of the cluster", name)
		}
		return "x", nil
	})
	if err != nil {
		c.breach(field, err.Error(), "write one of {"+strings.Join(ClusterValueNames(), "}, {")+"}; braces stand for nothing else")
		return value
	}
	if wanted == cty.NilType {
		return value
	}
	if err := fits(example, wanted); err != nil {
		c.breach(field, "does not fit the field's type: "+err.Error(), "write "+wanted.FriendlyNameForConstraint())
	}
	return value
}

// fits answers why decoded JSON is not of a type; nil when it is.
func fits(value any, wanted cty.Type) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	implied, err := ctyjson.ImpliedType(raw)
	if err != nil {
		return err
	}
	decoded, err := ctyjson.Unmarshal(raw, implied)
	if err != nil {
		return err
	}
	if _, err := convert.Convert(decoded, wanted); err != nil {
		return errors.New(oneLine(err.Error()))
	}
	return surplus(value, wanted)
}

// surplus answers which attribute an object has that its type does not: a conversion would drop it without a word.
func surplus(value any, wanted cty.Type) error {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if wanted.IsListType() || wanted.IsSetType() {
				if err := surplus(item, wanted.ElementType()); err != nil {
					return err
				}
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			switch {
			case wanted.IsMapType():
				if err := surplus(value[name], wanted.ElementType()); err != nil {
					return err
				}
			case wanted.IsObjectType() && !wanted.HasAttribute(name):
				return fmt.Errorf("it has no attribute %q", name)
			case wanted.IsObjectType():
				if err := surplus(value[name], wanted.AttributeType(name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// IsUnset tells whether decoded JSON is as good as not there: null, "" or [], which clients write for a field that nobody has set.
func IsUnset(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	default:
		return false
	}
}
