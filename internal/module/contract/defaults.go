package contract

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
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// ReadDefaults returns the valid defaults of module.yaml, and reports what is wrong with the
// others.
func ReadDefaults(meta *Metadata, providerSpec module.Variable) []module.Default {
	var read []module.Default
	for i, written := range meta.Spec.Defaults {
		c := defaultCheck{Metadata: meta, at: fmt.Sprintf("spec.defaults[%d]", i), providerSpec: providerSpec.Type,
			sound: true}
		one := c.read(written)
		for _, other := range read {
			if one.Path == other.Path || strings.HasPrefix(one.Path, other.Path+".") ||
				strings.HasPrefix(other.Path, one.Path+".") {
				c.refuse("path", fmt.Sprintf("is %q, which the default of %q sets as well", one.Path, other.Path), "keep one")
			}
		}
		if c.sound {
			read = append(read, one)
		}
	}
	return read
}

// defaultCheck checks one default against the type of the providerSpec.
type defaultCheck struct {
	*Metadata
	at           string
	providerSpec cty.Type
	sound        bool
}

func (c *defaultCheck) refuse(field, problem, fix string) {
	c.sound = false
	c.AtField(c.at+"."+field, problem, fix)
}

func (c *defaultCheck) read(written v1alpha1.ModuleDefault) module.Default {
	read := module.Default{Path: written.Path, Unless: written.Unless, ByArchitecture: map[string]any{}}
	const fix = "write the path of a field, joined by dots"
	wanted, exists := fieldType(c.providerSpec, written.Path)
	if !exists {
		c.refuse("path", fmt.Sprintf("is %q, which is not a field of var.provider_spec", written.Path), fix)
	}
	for i, path := range written.Unless {
		if _, exists := fieldType(c.providerSpec, path); !exists {
			c.refuse(fmt.Sprintf("unless[%d]", i), fmt.Sprintf("is %q, which is not a field of var.provider_spec", path), fix)
		}
	}
	read.Literal = c.value("value", written.Value.Raw, wanted)
	for _, architecture := range slices.Sorted(maps.Keys(written.ByArchitecture)) {
		read.ByArchitecture[architecture] = c.value("byArchitecture."+architecture,
			written.ByArchitecture[architecture].Raw, wanted)
	}
	return read
}

// value decodes a value and checks it against the wanted type, if known.
func (c *defaultCheck) value(field string, raw []byte, wanted cty.Type) any {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || module.IsUnset(value) {
		c.refuse(field, `is missing, or is null, "" or [], which would set nothing`, "write a value, or remove the default")
		return nil
	}
	example, err := module.ExpandValue(value, func(name string) (string, error) {
		if !slices.Contains(module.ClusterValueNames(), name) {
			return "", fmt.Errorf("uses {%s}, which is not a value of the cluster", name)
		}
		return "x", nil
	})
	if err != nil {
		c.refuse(field, err.Error(), "use one of {"+strings.Join(module.ClusterValueNames(), "}, {")+
			"}; braces have no other use")
		return value
	}
	if wanted == cty.NilType {
		return value
	}
	if err := fits(example, wanted); err != nil {
		c.refuse(field, "does not match the field's type: "+err.Error(), "write "+wanted.FriendlyNameForConstraint())
	}
	return value
}

// fits returns an error unless decoded JSON has a type.
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
		return errors.New(OneLine(err.Error()))
	}
	return surplus(value, wanted)
}

// surplus reports an attribute of an object that its type lacks. A conversion would drop it
// silently.
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
				return fmt.Errorf("unknown attribute %q", name)
			case wanted.IsObjectType():
				if err := surplus(value[name], wanted.AttributeType(name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
