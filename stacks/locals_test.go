package stacks_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// withLocals adds the locals of a stack to its variables. It stands in for the loader.
func withLocals(t *testing.T, files fs.FS, variables []byte) []byte {
	t.Helper()
	content, err := fs.ReadFile(files, "locals.tf")
	if err != nil {
		t.Fatal(err)
	}
	parsed, diags := hclparse.NewParser().ParseHCL(content, "locals.tf")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	typ, err := ctyjson.ImpliedType(variables)
	if err != nil {
		t.Fatal(err)
	}
	values, err := ctyjson.Unmarshal(variables, typ)
	if err != nil {
		t.Fatal(err)
	}
	context := module.EvalContext(values.AsValueMap())
	known := map[string]cty.Value{}
	attributes := parsed.Body.(*hclsyntax.Body).Blocks[0].Body.Attributes
	for range attributes {
		for name, attribute := range attributes {
			context.Variables["local"] = cty.ObjectVal(known)
			if value, diags := attribute.Expr.Value(context); !diags.HasErrors() {
				known[name] = value
			}
		}
	}
	if len(known) != len(attributes) {
		t.Fatalf("of %d locals only %v have a value", len(attributes), known)
	}
	locals := cty.ObjectVal(known)
	raw, err := ctyjson.Marshal(locals, locals.Type())
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(variables, &all); err != nil {
		t.Fatal(err)
	}
	all["locals"] = raw
	if raw, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	return raw
}
