package hclfuncs

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// FuzzFunctions evaluates whatever expression, with values that users write: it ends, within the limits, and what comes out can be shown.
func FuzzFunctions(f *testing.F) {
	for n, call := range append(append([]string{}, calls...), openTofuCalls...) {
		f.Add(call, "1e300000000", float64(n))
	}
	for _, text := range []string{
		`[for a in var.list : "${a}-${var.text}"]`, `{ for k, v in { a = var.text, b = var.number } : k => jsonencode(v) }`, `var.list[var.number]`, `var.list[*]`,
		`format(var.text, var.number)`, `formatlist(var.text, var.list)`, `indent(var.number, var.text)`, `replace(var.text, var.text, var.text)`, `regexall(var.text, var.text)`,
		`jsondecode(var.text)`, `csvdecode(var.text)`, `parseint(var.text, 36)`, `var.text * var.number`, `pow(var.number, var.number)`, `setproduct(var.list, var.list, var.list)`,
		`cidrsubnet(var.text, var.number, var.number)`, `substr(var.text, var.number, var.number)`, `split(var.text, var.text)`, `join(var.text, var.list)`, `range(var.number)`,
		`range(0, var.number, 0.001)`, `slice(var.list, 0, var.number)`, `chunklist(var.list, var.number)`, `timeadd("2026-01-02T03:04:05Z", var.text)`, `formatdate(var.text, var.text)`,
		`try(jsondecode(var.text), tonumber(var.text), var.list)`, `"%{ for a in var.list }${a}%{ endfor }"`, `zipmap(var.list, var.list)`, `merge({ a = var.text }, jsondecode(var.text))`,
	} {
		f.Add(text, "%1000000000d", 1e300)
		f.Add(text, `{"a":[1e308,"\u0000"]}`, -0.5)
		f.Add(text, "((((x{10}){10}){10}", 7.0)
	}
	f.Fuzz(func(t *testing.T, text, value string, number float64) {
		if len(text) > 1000 || number != number {
			return
		}
		expression, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
		if diags.HasErrors() {
			return
		}
		variables := map[string]cty.Value{
			"text": cty.StringVal(value), "number": cty.NumberFloatVal(number), "list": cty.ListVal([]cty.Value{cty.StringVal(value), cty.StringVal("a"), cty.StringVal("")}),
			"none": cty.NullVal(cty.String), "open": cty.UnknownVal(cty.String), "secret": cty.StringVal(value).Mark(Sensitive),
		}
		context := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(variables)}}
		budget := NewBudget()
		Bound(context, budget)
		result, diags := Metered(expression).Value(context)
		if used := budget.Used(); used > MaxWork {
			t.Fatalf("the work is %d", used)
		}
		if !diags.HasErrors() && NewBudget().Admit(result) != nil {
			t.Fatalf("the result is beyond a limit: %v", NewBudget().Admit(result))
		}
	})
}
