package hclfuncs

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// Mark marks values in expressions.
type Mark string

// Sensitive marks a value that must not be shown, and whatever is computed from it.
const Sensitive Mark = "sensitive"

var conversionFunctions = map[string]function.Function{
	"tobool":   conversion(cty.Bool),
	"tolist":   conversion(cty.List(cty.DynamicPseudoType)),
	"tomap":    conversion(cty.Map(cty.DynamicPseudoType)),
	"tonumber": conversion(cty.Number),
	"toset":    conversion(cty.Set(cty.DynamicPseudoType)),
	"tostring": conversion(cty.String),

	"issensitive": marking(cty.Bool, func(value cty.Value) cty.Value {
		if !value.IsKnown() {
			return cty.UnknownVal(cty.Bool)
		}
		return cty.BoolVal(value.HasMark(Sensitive))
	}),
	"nonsensitive": marking(cty.NilType, func(value cty.Value) cty.Value {
		plain, marks := value.Unmark()
		delete(marks, Sensitive)
		return plain.WithMarks(marks)
	}),
	"sensitive": marking(cty.NilType, func(value cty.Value) cty.Value { return value.Mark(Sensitive) }),
}

// anything is a parameter that takes a value as it is.
var anything = function.Parameter{
	Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true,
	AllowDynamicType: true,
}

// conversion returns a function that converts its argument to a type.
func conversion(wanted cty.Type) function.Function {
	refuse := func(given cty.Type) error {
		return function.NewArgErrorf(0, "%s cannot be converted to %s", given.FriendlyName(),
			wanted.FriendlyNameForConstraint())
	}
	value := anything
	value.AllowUnknown = false
	return function.New(&function.Spec{
		Params: []function.Parameter{value},
		Type: func(args []cty.Value) (cty.Type, error) {
			if given := args[0].Type(); !given.Equals(wanted) && convert.GetConversionUnsafe(given, wanted) == nil {
				return cty.NilType, refuse(given)
			}
			return wanted, nil
		},
		Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
			converted, err := convert.Convert(args[0], result)
			if err != nil {
				return cty.NilVal, refuse(args[0].Type())
			}
			return converted, nil
		},
	})
}

// marking makes a function that looks at marks. Its result has the given type, or that of its
// argument where none is given.
func marking(result cty.Type, compute func(cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{anything},
		Type: func(args []cty.Value) (cty.Type, error) {
			if result == cty.NilType {
				return args[0].Type(), nil
			}
			return result, nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return compute(args[0]), nil },
	})
}

// unify returns the one type that all the values convert to.
func unify(values []cty.Value) (cty.Type, error) {
	types := make([]cty.Type, 0, len(values))
	for _, value := range values {
		types = append(types, value.Type())
	}
	unified, _ := convert.UnifyUnsafe(types)
	if unified == cty.NilType {
		return cty.NilType, fmt.Errorf("all arguments must have the same type")
	}
	return unified, nil
}
