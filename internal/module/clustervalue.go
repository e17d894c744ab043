package module

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"
)

// clusterType has all attributes that a module may declare.
var clusterType, _ = gocty.ImpliedType(Cluster{}) // its tags are valid

// CheckClusterType returns what is wrong with a module's type of the variable, and the fix, or "".
func CheckClusterType(declared cty.Type) (problem, fix string) {
	if !declared.IsObjectType() {
		return "is not an object", "write type = object({ ... }) with the attributes that the module needs"
	}
	for _, name := range slices.Sorted(maps.Keys(declared.AttributeTypes())) {
		if clusterType.HasAttribute(name) && !declared.AttributeOptional(name) {
			return "has the attribute " + name + ", which is not optional",
				fmt.Sprintf("write %s = optional(...): a test, or an earlier version, may not set it", name)
		}
	}
	return checkAgainst(declared, clusterType, "")
}

// checkAgainst compares a type with the known one.
func checkAgainst(declared, wanted cty.Type, path string) (problem, fix string) {
	switch {
	case wanted.IsObjectType() && declared.IsObjectType():
		for _, name := range slices.Sorted(maps.Keys(declared.AttributeTypes())) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if !wanted.HasAttribute(name) {
				return "has the attribute " + at + ", which does not exist", "use " +
					strings.Join(slices.Sorted(maps.Keys(wanted.AttributeTypes())), ", ")
			}
			if problem, fix = checkAgainst(declared.AttributeType(name), wanted.AttributeType(name), at); problem != "" {
				return problem, fix
			}
		}
		return "", ""
	case wanted.IsListType() && declared.IsListType():
		return checkAgainst(declared.ElementType(), wanted.ElementType(), path)
	case wanted.Equals(declared):
		return "", ""
	}
	return fmt.Sprintf("has the attribute %s, which is not a %s",
		path, wanted.FriendlyName()), "use the type in docs/contracts/module.md"
}

// Value returns the variable in the type that a module declares, with its defaults. Unknown strings
// are null; unknown lists and maps are empty.
func (c *Cluster) Value(declared cty.Type, defaults *typeexpr.Defaults) (cty.Value, error) {
	if c == nil {
		c = &Cluster{}
	}
	value, err := c.all()
	if err != nil {
		return cty.NilVal, fmt.Errorf("encoding the facts about the cluster: %w", err)
	}
	if defaults != nil {
		value = defaults.Apply(value)
	}
	converted, err := convert.Convert(value, declared)
	if err != nil {
		return cty.NilVal,
			fmt.Errorf("the facts about the cluster do not match the type of the module's variable cluster: %w", err)
	}
	return converted, nil
}

// all returns a value of clusterType. Unknown strings are null; the value of a tag may be empty.
func (c *Cluster) all() (cty.Value, error) {
	value, err := gocty.ToCtyValue(*c, clusterType)
	if err != nil {
		return cty.NilVal, err
	}
	return cty.Transform(value, func(path cty.Path, value cty.Value) (cty.Value, error) {
		switch kind := value.Type(); {
		case value.IsNull() && kind.IsListType():
			return cty.ListValEmpty(kind.ElementType()), nil
		case value.IsNull() && kind.IsMapType():
			return cty.MapValEmpty(kind.ElementType()), nil
		case kind == cty.String && value.AsString() == "":
			step, isField := path[len(path)-1].(cty.GetAttrStep)
			if isField && step.Name != "value" {
				return cty.NullVal(cty.String), nil
			}
		}
		return value, nil
	})
}
