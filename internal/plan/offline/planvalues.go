package offline

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// unmarshal decodes an object as engines and providers exchange it.
func (b block) unmarshal(raw []byte) (cty.Value, error) {
	of := b.Type()
	value, err := ctymsgpack.Unmarshal(raw, of)
	if err == nil {
		// an empty map is decoded as an object without attributes
		err = errors.Join(value.Type().TestConformance(of)...)
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("decoding an object: %w", err)
	}
	return value, nil
}

// marshal is the inverse of unmarshal.
func (b block) marshal(value cty.Value) ([]byte, error) {
	raw, err := ctymsgpack.Marshal(value, b.Type())
	if err != nil {
		return nil, fmt.Errorf("encoding an object: %w", err)
	}
	return raw, nil
}

// Type returns the type of the block's objects.
func (b block) Type() cty.Type {
	types := map[string]cty.Type{}
	for name, one := range b.attributes {
		types[name] = one.valueType()
	}
	for name, one := range b.blocks {
		types[name] = one.repeated()
	}
	return cty.Object(types)
}

// repeated returns the type of the nested block: an object or a collection. Objects of different types need a dynamic
// type.
func (n nested) repeated() cty.Type {
	object := n.Type()
	switch n.nesting {
	case nestingList:
		if n.isDynamic() {
			return cty.DynamicPseudoType
		}
		return cty.List(object)
	case nestingSet:
		return cty.Set(object)
	case nestingMap:
		if n.isDynamic() {
			return cty.DynamicPseudoType
		}
		return cty.Map(object)
	}
	return object
}

func (a attribute) valueType() cty.Type {
	if a.objects != nil {
		return a.objects.repeated()
	}
	return a.kind
}

func typeOf(raw []byte) (cty.Type, error) {
	if len(raw) == 0 {
		return cty.NilType, errors.New("an attribute has no type")
	}
	var read cty.Type
	if err := json.Unmarshal(raw, &read); err != nil {
		return cty.NilType, fmt.Errorf("reading the type of an attribute: %w", err)
	}
	return read, nil
}

// isUnset reports whether a value is null or unknown.
func isUnset(value cty.Value) bool { return value.IsNull() || !value.IsKnown() }

// rewriteObject returns an object or map with each value replaced by change. It returns null and unknown unchanged.
func rewriteObject(value cty.Value, change func(name string, value cty.Value) cty.Value) cty.Value {
	if isUnset(value) || value.LengthInt() == 0 {
		return value
	}
	changed := value.AsValueMap()
	for name, one := range changed {
		changed[name] = change(name, one)
	}
	if value.Type().IsMapType() {
		return cty.MapVal(changed)
	}
	return cty.ObjectVal(changed)
}

// rewriteList is rewriteObject for a list or set.
func rewriteList(value cty.Value, change func(n int, value cty.Value) cty.Value) cty.Value {
	if isUnset(value) || value.LengthInt() == 0 {
		return value
	}
	changed := value.AsValueSlice()
	for n, one := range changed {
		changed[n] = change(n, one)
	}
	if value.Type().IsSetType() {
		return cty.SetVal(changed)
	}
	return cty.ListVal(changed)
}
