package hclfuncs

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

var collectionFunctions = map[string]function.Function{
	"alltrue":  truth(true),
	"anytrue":  truth(false),
	"coalesce": coalesce,
	"contains": contains,
	"index":    index,
	"length":   length,
	"lookup":   lookup,
	"one":      one,
	"sum":      sum,
}

func value(name string) function.Parameter {
	return function.Parameter{Name: name, Type: cty.DynamicPseudoType}
}

// truth makes alltrue (a false decides it, as does null) and anytrue (a true decides it, null does
// not).
func truth(all bool) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for _, element := range args[0].Elements() {
				switch {
				case !element.IsKnown() && all:
					// As in the engines, which do not look for a false behind it.
					return cty.UnknownVal(cty.Bool), nil
				case !element.IsKnown():
					unknown = true
				case element.IsNull() && !all:
				case element.IsNull() || element.False() && all:
					return cty.False, nil
				case element.True() && !all:
					return cty.True, nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(all), nil
		},
	})
}

// coalesce returns the first argument that is neither null nor the empty string.
var coalesce = function.New(&function.Spec{
	VarParam: &function.Parameter{
		Name: "vals", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true,
	},
	Type:         unify,
	RefineResult: notNull,
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		for _, arg := range args {
			converted, err := convert.Convert(arg, result)
			if err != nil {
				return cty.NilVal, err
			}
			switch {
			case !converted.IsKnown():
				return cty.UnknownVal(result), nil
			case converted.IsNull():
			case result == cty.String && converted.AsString() == "":
			default:
				return converted, nil
			}
		}
		return cty.NilVal, errors.New("all arguments are null or empty")
	},
})

// contains is the library's, but that null is refused, as the engines refuse it.
var contains = function.New(&function.Spec{
	Params:       []function.Parameter{value("list"), value("value")},
	Type:         function.StaticReturnType(cty.Bool),
	RefineResult: notNull,
	Impl:         func(args []cty.Value, _ cty.Type) (cty.Value, error) { return stdlib.Contains(args[0], args[1]) },
})

var index = function.New(&function.Spec{
	Params:       []function.Parameter{value("list"), value("value")},
	Type:         function.StaticReturnType(cty.Number),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if kind := args[0].Type(); !kind.IsListType() && !kind.IsTupleType() {
			return cty.NilVal, function.NewArgErrorf(0, "a list is required")
		}
		for at, element := range args[0].Elements() {
			equal, err := stdlib.Equal(element, args[1])
			switch {
			case err != nil:
				return cty.NilVal, err
			case !equal.IsKnown():
				return cty.UnknownVal(cty.Number), nil
			case equal.True():
				return at, nil
			}
		}
		return cty.NilVal, errors.New("the list does not contain the value")
	},
})

// length counts characters, elements, keys and attributes.
var length = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true,
		AllowMarked: true}},
	Type: func(args []cty.Value) (cty.Type, error) {
		if kind := args[0].Type(); kind == cty.Number || kind == cty.Bool || kind.IsCapsuleType() {
			return cty.Number, function.NewArgErrorf(0, "a string, a collection or an object is required")
		}
		return cty.Number, nil
	},
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		kind, marks := args[0].Type(), args[0].Marks()
		switch {
		case kind == cty.DynamicPseudoType:
			return cty.UnknownVal(cty.Number).WithMarks(marks), nil
		case kind == cty.String:
			return stdlib.Strlen(args[0])
		case kind.IsTupleType():
			return cty.NumberIntVal(int64(kind.Length())).WithMarks(marks), nil
		case kind.IsObjectType():
			return cty.NumberIntVal(int64(len(kind.AttributeTypes()))).WithMarks(marks), nil
		default:
			return args[0].Length(), nil
		}
	},
})

// lookup returns the element of a map or an object, or the default where there is none.
var lookup = function.New(&function.Spec{
	Params: []function.Parameter{value("map"), {Name: "key", Type: cty.String}},
	VarParam: &function.Parameter{
		Name: "default", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true,
	},
	Type: lookupType,
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		from, key := args[0], args[1]
		switch {
		case from.Type().IsObjectType() && from.Type().HasAttribute(key.AsString()):
			return from.GetAttr(key.AsString()), nil
		case from.Type().IsMapType() && from.HasIndex(key).True():
			return from.Index(key), nil
		case len(args) == 3:
			return convert.Convert(args[2], result)
		default:
			return cty.NilVal, errors.New("there is no such key")
		}
	},
})

func lookupType(args []cty.Value) (cty.Type, error) {
	if len(args) > 3 {
		return cty.NilType, errors.New("two or three arguments are required")
	}
	from, key := args[0].Type(), args[1]
	switch {
	case from.IsMapType():
		if len(args) == 3 {
			if _, err := convert.Convert(args[2], from.ElementType()); err != nil {
				return cty.NilType, function.NewArgErrorf(2, "the default must have the type of the map's elements")
			}
		}
		return from.ElementType(), nil
	case !from.IsObjectType():
		return cty.NilType, function.NewArgErrorf(0, "a map is required")
	case !key.IsKnown():
		return cty.DynamicPseudoType, nil
	case from.HasAttribute(key.AsString()):
		return from.AttributeType(key.AsString()), nil
	case len(args) == 3:
		return args[2].Type(), nil
	default:
		return cty.NilType, function.NewArgErrorf(0, "the object has no such attribute")
	}
}

// one returns the element of a collection of one, and null for an empty one.
var one = function.New(&function.Spec{
	Params: []function.Parameter{value("list")},
	Type: func(args []cty.Value) (cty.Type, error) {
		kind := args[0].Type()
		switch {
		case kind.IsListType(), kind.IsSetType():
			return kind.ElementType(), nil
		case kind.IsTupleType() && kind.Length() == 0:
			return cty.DynamicPseudoType, nil
		case kind.IsTupleType() && kind.Length() == 1:
			return kind.TupleElementType(0), nil
		default:
			return cty.NilType, errMany
		}
	},
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		if !args[0].Length().IsKnown() {
			return cty.UnknownVal(result), nil
		}
		elements := args[0].AsValueSlice()
		switch len(elements) {
		case 0:
			return cty.NullVal(result), nil
		case 1:
			return elements[0], nil
		default:
			return cty.NilVal, errMany
		}
	},
})

var errMany = function.NewArgErrorf(0, "a list of one element or none is required")

var sum = function.New(&function.Spec{
	Params:       []function.Parameter{value("list")},
	Type:         function.StaticReturnType(cty.Number),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if kind := args[0].Type(); !kind.IsListType() && !kind.IsSetType() && !kind.IsTupleType() {
			return cty.NilVal, function.NewArgErrorf(0, "a list of numbers is required")
		}
		if args[0].LengthInt() == 0 {
			return cty.NilVal, function.NewArgErrorf(0, "an empty list has no sum")
		}
		if !args[0].IsWhollyKnown() {
			return cty.UnknownVal(cty.Number), nil
		}
		total := cty.Zero
		for _, element := range args[0].Elements() {
			number, err := convert.Convert(element, cty.Number)
			if err != nil || number.IsNull() {
				return cty.NilVal, function.NewArgErrorf(0, "a list of numbers is required")
			}
			total = total.Add(number)
		}
		return total, nil
	},
})
