package module

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// FuzzLocals evaluates two locals, of which one refers to the other, for whatever fields: they come out as JSON, or the error says which has failed.
func FuzzLocals(f *testing.F) {
	spec := cty.Object(map[string]cty.Type{"text": cty.String, "number": cty.Number, "list": cty.List(cty.String), "map": cty.Map(cty.String)})
	for _, seed := range [][2]string{
		{`jsonencode(var.provider_spec)`, `"${local.first}${local.first}"`}, {`[for a in var.provider_spec.list : a]`, `[for a in local.first : [for b in local.first : a]]`},
		{`tonumber(var.provider_spec.text)`, `tostring(local.first)`}, {`merge(var.provider_spec.map, { a = var.provider_spec.text })`, `{ for k, v in local.first : v => k... }`},
		{`jsondecode(var.provider_spec.text)`, `flatten([local.first, [local.first]])`}, {`var.provider_spec.number * 2`, `pow(local.first, local.first)`},
		{`toset(var.provider_spec.list)`, `setproduct(local.first, local.first)`}, {`regexall(".", var.provider_spec.text)`, `join(var.provider_spec.text, local.first)`},
		{`format("%${var.provider_spec.number}d", 1)`, `length(local.first)`}, {`try(tonumber(var.provider_spec.text), 0)`, `range(local.first)`},
	} {
		f.Add(seed[0], seed[1], "1e300000000", 4.0)
		f.Add(seed[0], seed[1], `[[1],{"a":"b"}]`, 1e300)
	}
	f.Fuzz(func(t *testing.T, first, second, text string, number float64) {
		if len(first)+len(second) > 2000 {
			return
		}
		definition := Definition{Name: "example", Variables: map[string]Variable{VariableProviderSpec: {Name: VariableProviderSpec, Type: spec}}}
		for name, source := range map[string]string{"first": first, "second": second} {
			expression, diags := hclsyntax.ParseExpression([]byte(source), "locals.tf", hcl.InitialPos)
			if diags.HasErrors() {
				return
			}
			definition.Locals = append(definition.Locals, Local{Name: name, Expression: expression, Range: expression.Range()})
		}
		if definition.Locals[0].Name != "first" {
			definition.Locals[0], definition.Locals[1] = definition.Locals[1], definition.Locals[0]
		}
		variables, err := json.Marshal(map[string]any{VariableProviderSpec: map[string]any{
			"text": text, "number": number, "list": []string{text, first, ""}, "map": map[string]string{"a": text, second: "b"},
		}})
		if err != nil {
			return // the number is none of JSON's
		}
		raw, err := New(definition).Locals(variables)
		if failed, is := errors.AsType[*LocalError](err); is {
			if failed.Local == "" || failed.Reason == "" {
				t.Fatalf("want the local and the reason, got %v", err)
			}
			return
		}
		if err == nil && (!json.Valid(raw) || len(raw) > 8*hclfuncs.MaxText) {
			t.Fatalf("want JSON, got %d bytes", len(raw))
		}
	})
}
