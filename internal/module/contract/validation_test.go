package contract_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// validated adds a validation block to the variable provider_spec of the valid module; it begins at line 21.
func validated(lines ...string) moduletest.Change {
	return moduletest.Change{
		"variables.tf", "  description = \"The fields of the providerSpec.\"\n",
		"  description = \"The fields of the providerSpec.\"\n\n  validation {\n    " + strings.Join(lines, "\n    ") + "\n  }\n",
	}
}

const message = `error_message = "Write a size."`

func TestLoadReadsValidations(t *testing.T) {
	loaded := moduletest.Load(t, validated(
		`condition = alltrue([for disk in var.provider_spec.disks : disk.gib > 0 && length(var.machine.name) < 64]) || var.user_data == ""`, message))
	validations := loaded.Variable(module.VariableProviderSpec).Validations
	if len(validations) != 1 || len(loaded.Variable(module.VariableMachine).Validations) != 0 {
		t.Fatalf("want one validation of provider_spec only, got %d", len(validations))
	}
	validation := validations[0]
	if got, want := validation.Range.String(), "variables.tf:21,3-13"; got != want {
		t.Errorf("want it at %s, got %s", want, got)
	}
	var references []string
	for _, reference := range validation.References {
		references = append(references, contract.Describe(reference))
	}
	want := []string{"var.provider_spec.disks", "var.machine.name", "var.user_data"}
	if diff := cmp.Diff(want, references); validation.Variable != module.VariableProviderSpec || diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	disks := cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"gib": cty.Zero})})
	context := module.EvalContext(map[string]cty.Value{
		"provider_spec": cty.ObjectVal(map[string]cty.Value{"disks": disks}),
		"machine":       cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("worker-1")}),
		"user_data":     cty.StringVal("data"),
	})
	if got, diags := validation.Condition.Value(context); diags.HasErrors() || !got.RawEquals(cty.False) {
		t.Errorf("want the condition to come out false, got %#v, %v", got, diags)
	}
}

func TestLoadRefusesAValidationThatOnlyTheEngineCouldCheck(t *testing.T) {
	const fix = "use functions whose result depends only on their arguments; docs/contracts/module.md lists them"
	const condition = `condition = var.provider_spec.size != ""`
	tests := map[string]struct {
		changes []moduletest.Change
		want    string // the whole text of the only breach
	}{
		"a function of files": {
			changes: []moduletest.Change{validated(`condition = fileexists(var.provider_spec.size)`, message)},
			want:    `variables.tf:22: variable "provider_spec" validation condition calls fileexists, which cannot be evaluated before a run; ` + fix,
		},
		"a function that can would hide": {
			changes: []moduletest.Change{validated(`condition = var.provider_spec.size == "" || can(file("x"))`, message)},
			want:    `variables.tf:22: variable "provider_spec" validation condition calls file, which cannot be evaluated before a run; ` + fix,
		},
		"a function of time in a loop": {
			changes: []moduletest.Change{validated(`condition = alltrue([`, `  for disk in var.provider_spec.disks :`, `  timecmp(timestamp(), "x") == disk.gib`, `])`, message)},
			want:    `variables.tf:24: variable "provider_spec" validation condition calls timestamp, which cannot be evaluated before a run; ` + fix,
		},
		"a function of a provider": {
			changes: []moduletest.Change{validated(`condition = provider::example::valid(var.provider_spec.size)`, message)},
			want:    `variables.tf:22: variable "provider_spec" validation condition calls provider::example::valid, which cannot be evaluated before a run; ` + fix,
		},
		"a function in the message": {
			changes: []moduletest.Change{validated(condition, `error_message = "Write ${file("sizes")}."`)},
			want:    `variables.tf:23: variable "provider_spec" validation error_message calls file, which cannot be evaluated before a run; ` + fix,
		},
		"a local value": {
			changes: []moduletest.Change{validated(`condition = contains(local.sizes, var.provider_spec.size)`, message)},
			want: `variables.tf:22: variable "provider_spec" validation condition refers to local.sizes, which cannot be evaluated before a run; ` +
				`refer only to var.machine, var.provider_spec, var.user_data and var.cluster`,
		},
		"the folder of the module": {
			changes: []moduletest.Change{validated(`condition = try(path.module, "") == var.provider_spec.size`, message)},
			want: `variables.tf:22: variable "provider_spec" validation condition refers to path.module, which cannot be evaluated before a run; ` +
				`refer only to var.machine, var.provider_spec, var.user_data and var.cluster`,
		},
		"a field that does not exist": {
			changes: []moduletest.Change{validated(`condition = can(var.provider_spec.sise)`, message)},
			want: `variables.tf:22: variable "provider_spec" validation condition refers to var.provider_spec.sise, which does not exist: ` +
				`This object does not have an attribute named "sise".; correct the spelling, or add it to the type`,
		},
		"a condition about nothing of its own": {
			changes: []moduletest.Change{validated(`condition = var.machine.name != ""`, message)},
			want:    `variables.tf:22: variable "provider_spec" validation condition does not refer to the variable; refer to var.provider_spec`,
		},
		"a condition that is a text": {
			changes: []moduletest.Change{validated(`condition = [var.provider_spec.size]`, message)},
			want:    `variables.tf:22: variable "provider_spec" validation condition does not return bool; use an expression that returns true or false`,
		},
		"a call with too few arguments": {
			changes: []moduletest.Change{validated(`condition = contains([var.provider_spec.size])`, message)},
			want: `variables.tf:22: variable "provider_spec" validation condition cannot be evaluated: Not enough function arguments; ` +
				`Function "contains" expects 2 argument(s). Missing value for "value".`,
		},
		"a message that is a list": {
			changes: []moduletest.Change{validated(condition, `error_message = [var.provider_spec.size]`)},
			want:    `variables.tf:23: variable "provider_spec" validation error_message does not return string; use an expression that returns a string`,
		},
		"a message that shows a secret": {
			changes: []moduletest.Change{validated(condition, `error_message = "${nonsensitive(var.user_data)} is wrong."`)},
			want:    `variables.tf:23: variable "provider_spec" validation error_message would show var.user_data, which is sensitive; remove it`,
		},
		"no message": {
			changes: []moduletest.Change{validated(condition)},
			want:    `variables.tf:21: variable "provider_spec" validation needs both condition and error_message; write both`,
		},
		"an unknown argument": {
			changes: []moduletest.Change{validated(condition, message, `severity = "low"`)},
			want:    `variables.tf:24: variable "provider_spec" validation has the argument severity, which validations do not have; remove it`,
		},
		"an unknown block": {
			changes: []moduletest.Change{validated(condition, message, "lifecycle {}")},
			want:    `variables.tf:24: variable "provider_spec" validation has a block lifecycle, which validations do not have; remove it`,
		},
		"variables that check one another": {
			changes: []moduletest.Change{
				validated(`condition = var.provider_spec.size != var.machine.name`, message),
				{"variables.tf", "  description = \"What the Machine says of itself.\"\n", "  description = \"What the Machine says of itself.\"\n  validation {\n" +
					"    condition     = var.machine.name != \"\"\n    error_message = \"Not ${var.provider_spec.size}.\"\n  }\n"},
			},
			want: `variables.tf:12: variable "machine" validation refers to var.provider_spec, whose validations refer back to it; check both in the validation of one of them` +
				"\n" + `variables.tf:26: variable "provider_spec" validation refers to var.machine, whose validations refer back to it; check both in the validation of one of them`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, tc.changes...)))
			var broken *contract.Error
			if !errors.As(err, &broken) {
				t.Fatalf("want a contract.Error, got %v", err)
			}
			lines := make([]string, 0, len(broken.Breaches))
			for _, breach := range broken.Breaches {
				lines = append(lines, breach.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
