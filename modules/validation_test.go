package modules_test

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// run is a run block of a module's tests.
type run struct {
	name string
	// place is for messages.
	place hcl.Range
	// fails are the variables whose validations the run expects to fail.
	fails []string
	// warns are the check blocks that the run expects to fail.
	warns []string
	// values are the variables that it is given.
	values map[string]cty.Value
}

// TestEveryValidationIsSeenToFail checks what tests are for: a run that expects a variable to be refused has it refused by one
// validation and no other, and each validation has such a run. The engine reports the variable only.
func TestEveryValidationIsSeenToFail(t *testing.T) {
	long.Test(t)
	each(t, func(t *testing.T, m kept) {
		seen := map[string]bool{}
		for _, r := range runs(t, m.files) {
			refusals := refusals(t, m, r)
			switch {
			case len(r.fails) == 0 && len(refusals) > 0:
				t.Errorf("%s: run %q expects no variable to be refused, but %s does", r.place, r.name, refusals[0].Range)
			case len(r.fails) > 0 && (len(refusals) != 1 || len(r.fails) != 1 || refusals[0].Variable != r.fails[0]):
				t.Errorf("%s: run %q expects %v to be refused; want exactly one validation to do so, not those at %v", r.place, r.name, r.fails, places(refusals))
			case len(r.fails) > 0:
				seen[refusals[0].Range.String()] = true
			}
		}
		for _, variable := range []string{module.VariableMachine, module.VariableProviderSpec, module.VariableUserData} {
			for _, validation := range m.Variable(variable).Validations {
				if !seen[validation.Range.String()] {
					t.Errorf("%s: no run of the tests has this validation of var.%s refuse anything: add one with expect_failures = [var.%[2]s]", validation.Range, variable)
				}
			}
		}
	})
}

func places(validations []module.Validation) []string {
	var found []string
	for _, validation := range validations {
		found = append(found, validation.Range.String())
	}
	return found
}

// TestEveryCheckIsSeenToFail checks the same of what only warns: each assertion of variables fails in a run that expects it, and
// in no other that goes on.
func TestEveryCheckIsSeenToFail(t *testing.T) {
	each(t, func(t *testing.T, m kept) {
		seen, ofVariables := map[string]bool{}, map[string]bool{}
		for _, check := range m.Checks() {
			ofVariables[check.Name] = true
		}
		for _, r := range runs(t, m.files) {
			var warned []string
			for _, check := range failing(t, m, r) {
				warned, seen[check.Range.String()] = append(warned, check.Name), true
			}
			slices.Sort(warned)
			want := slices.DeleteFunc(slices.Clone(r.warns), func(name string) bool { return !ofVariables[name] })
			if len(r.fails) == 0 && !slices.Equal(warned, want) {
				t.Errorf("%s: run %q expects the checks %v to fail, but %v do", r.place, r.name, want, warned)
			}
		}
		for _, check := range m.Checks() {
			if !seen[check.Range.String()] {
				t.Errorf("%s: no run of the tests has this check fail: add one with expect_failures = [check.%s]", check.Range, check.Name)
			}
		}
	})
}

// failing returns the checks of variables that a run's variables break.
func failing(t *testing.T, m kept, r run) []module.Check {
	t.Helper()
	var broken []module.Check
	context := module.EvalContext(valuesOf(t, m, r))
	for _, check := range m.Checks() {
		result, diags := check.Condition.Value(context)
		if diags.HasErrors() {
			t.Fatalf("%s: run %q: %v", r.place, r.name, diags)
		}
		if result.IsKnown() && result.False() {
			broken = append(broken, check)
		}
	}
	return broken
}

// refusals returns the validations that a run's variables break.
func refusals(t *testing.T, m kept, r run) []module.Validation {
	t.Helper()
	values := valuesOf(t, m, r)
	var broken []module.Validation
	context := module.EvalContext(values)
	for name := range values {
		for _, validation := range m.Variable(name).Validations {
			result, diags := validation.Condition.Value(context)
			if diags.HasErrors() {
				t.Fatalf("%s: run %q: %v", r.place, r.name, diags)
			}
			if result, _ = result.Unmark(); result.IsKnown() && result.False() {
				broken = append(broken, validation)
			}
		}
	}
	return broken
}

// valuesOf returns the variables of a run, of their types.
func valuesOf(t *testing.T, m kept, r run) map[string]cty.Value {
	t.Helper()
	values, given := map[string]cty.Value{}, maps.Clone(r.values)
	// Only cluster may be left out.
	if _, found := given[module.VariableCluster]; !found && m.Variable(module.VariableCluster).Type != cty.NilType {
		given[module.VariableCluster] = cty.EmptyObjectVal
	}
	for name, value := range given {
		variable := m.Variable(name)
		if name == module.VariableRecorded && variable.Type == cty.NilType {
			continue // a stack need not record what its module does
		}
		if variable.Defaults != nil {
			value = variable.Defaults.Apply(value)
		}
		converted, err := convert.Convert(value, variable.Type)
		if err != nil {
			t.Fatalf("%s: run %q gives var.%s another type than its own: %v", r.place, r.name, name, err)
		}
		values[name] = converted
	}
	return values
}

// runs reads the run blocks of a module's tests, each with the variables of its file and its own.
func runs(t *testing.T, files fs.FS) []run {
	t.Helper()
	names, err := fs.Glob(files, "tests/*.tftest.hcl")
	if err != nil {
		t.Fatal(err)
	}
	var found []run
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		parsed, diags := hclparse.NewParser().ParseHCL(content, name)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		body, ok := parsed.Body.(*hclsyntax.Body)
		if !ok {
			t.Fatalf("%s is not in the native syntax", name)
		}
		shared := variablesOf(t, body)
		for _, block := range body.Blocks {
			if block.Type == "run" {
				found = append(found, readRun(t, block, shared))
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("there is no run block in tests/")
	}
	return found
}

func readRun(t *testing.T, block *hclsyntax.Block, shared map[string]cty.Value) run {
	t.Helper()
	read := run{name: strings.Join(block.Labels, " "), place: block.DefRange(), values: maps.Clone(shared)}
	maps.Copy(read.values, variablesOf(t, block.Body))
	attribute := block.Body.Attributes["expect_failures"]
	if attribute == nil {
		return read
	}
	addresses, diags := hcl.ExprList(attribute.Expr)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, address := range addresses {
		traversal, diags := hcl.AbsTraversalForExpr(address)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if name := module.ReferencedVariable(traversal); name != "" {
			read.fails = append(read.fails, name)
		}
		if step, ok := traversal[len(traversal)-1].(hcl.TraverseAttr); ok && traversal.RootName() == "check" {
			read.warns = append(read.warns, step.Name)
		}
	}
	slices.Sort(read.fails)
	slices.Sort(read.warns)
	return read
}

// variablesOf returns the values in the variables block of a body.
func variablesOf(t *testing.T, body *hclsyntax.Body) map[string]cty.Value {
	t.Helper()
	values := map[string]cty.Value{}
	for _, block := range body.Blocks {
		if block.Type != "variables" {
			continue
		}
		for name, attribute := range block.Body.Attributes {
			value, diags := attribute.Expr.Value(&hcl.EvalContext{Functions: hclfuncs.Functions()})
			if diags.HasErrors() {
				t.Fatal(fmt.Errorf("reading the variables of a test: %w", diags))
			}
			values[name] = value
		}
	}
	return values
}
