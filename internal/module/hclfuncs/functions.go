// Package hclfuncs has the functions that expressions of a module may call where the operator
// evaluates them without an engine: in validations, in checks and in a stack's locals. They behave
// like the engines' functions of the same name and depend only on their arguments.
package hclfuncs

import (
	"maps"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Functions returns the functions by name: those of the engines that depend only on their
// arguments. The caller must not modify the map. It excludes functions of files, time and
// randomness, and some that no check needs. A module that calls one of those in a validation is
// rejected when it is loaded.
func Functions() map[string]function.Function { return functions }

var functions = withNamespace(libraryFunctions, collectionFunctions, conversionFunctions, textFunctions,
	networkFunctions)

// libraryFunctions behave in the library as in the engines.
var libraryFunctions = map[string]function.Function{
	"abs":             stdlib.AbsoluteFunc,
	"can":             tryfunc.CanFunc,
	"ceil":            stdlib.CeilFunc,
	"chomp":           stdlib.ChompFunc,
	"chunklist":       stdlib.ChunklistFunc,
	"coalescelist":    stdlib.CoalesceListFunc,
	"compact":         stdlib.CompactFunc,
	"concat":          stdlib.ConcatFunc,
	"csvdecode":       stdlib.CSVDecodeFunc,
	"distinct":        stdlib.DistinctFunc,
	"element":         stdlib.ElementFunc,
	"flatten":         stdlib.FlattenFunc,
	"floor":           stdlib.FloorFunc,
	"format":          stdlib.FormatFunc,
	"formatdate":      stdlib.FormatDateFunc,
	"formatlist":      stdlib.FormatListFunc,
	"indent":          stdlib.IndentFunc,
	"join":            stdlib.JoinFunc,
	"jsondecode":      stdlib.JSONDecodeFunc,
	"jsonencode":      stdlib.JSONEncodeFunc,
	"keys":            stdlib.KeysFunc,
	"log":             stdlib.LogFunc,
	"lower":           stdlib.LowerFunc,
	"max":             stdlib.MaxFunc,
	"merge":           stdlib.MergeFunc,
	"min":             stdlib.MinFunc,
	"parseint":        stdlib.ParseIntFunc,
	"pow":             stdlib.PowFunc,
	"range":           stdlib.RangeFunc,
	"regex":           stdlib.RegexFunc,
	"regexall":        stdlib.RegexAllFunc,
	"reverse":         stdlib.ReverseListFunc,
	"setintersection": stdlib.SetIntersectionFunc,
	"setproduct":      stdlib.SetProductFunc,
	"setsubtract":     stdlib.SetSubtractFunc,
	"setunion":        stdlib.SetUnionFunc,
	"signum":          stdlib.SignumFunc,
	"slice":           stdlib.SliceFunc,
	"sort":            stdlib.SortFunc,
	"split":           stdlib.SplitFunc,
	"strrev":          stdlib.ReverseFunc,
	"substr":          stdlib.SubstrFunc,
	"timeadd":         stdlib.TimeAddFunc,
	"title":           stdlib.TitleFunc,
	"trim":            stdlib.TrimFunc,
	"trimprefix":      stdlib.TrimPrefixFunc,
	"trimspace":       stdlib.TrimSpaceFunc,
	"trimsuffix":      stdlib.TrimSuffixFunc,
	"try":             tryfunc.TryFunc,
	"upper":           stdlib.UpperFunc,
	"values":          stdlib.ValuesFunc,
	"zipmap":          stdlib.ZipmapFunc,
}

// withNamespace joins the sets and adds each function under its name in the engines' namespace too.
func withNamespace(sets ...map[string]function.Function) map[string]function.Function {
	joined := map[string]function.Function{}
	for _, set := range sets {
		maps.Copy(joined, set)
	}
	for name, f := range maps.Clone(joined) {
		joined["core::"+name] = f
	}
	return joined
}

// notNull states that a function's result is known not to be null while it is not known yet.
func notNull(builder *cty.RefinementBuilder) *cty.RefinementBuilder { return builder.NotNull() }

// textFunction makes a function of strings.
func textFunction(result cty.Type, parameters []string,
	compute func(args []string) (cty.Value, error)) function.Function {
	spec := &function.Spec{
		Type:         function.StaticReturnType(result),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			texts := make([]string, 0, len(args))
			for _, arg := range args {
				texts = append(texts, arg.AsString())
			}
			return compute(texts)
		},
	}
	for _, name := range parameters {
		spec.Params = append(spec.Params, function.Parameter{Name: name, Type: cty.String})
	}
	return function.New(spec)
}
