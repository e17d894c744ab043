package contract_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// needing is the change that gives the module rights, one of them under a condition.
func needing(condition string) moduletest.Change {
	return moduletest.Change{"module.yaml", "  capacity:\n", "  rights:\n    - {provider: AWS, actions: ['ec2:RunInstances']}\n" +
		"    - provider: AWS\n      actions: ['ec2:CreateVolume']\n      when: " + condition + "\n  capacity:\n"}
}

func TestRightsAreNeededWhereTheirConditionHolds(t *testing.T) {
	loaded := moduletest.Load(t, needing(`length(var.provider_spec.disks) > 0 && var.machine.name != "spare"`))
	always := v1alpha1.ModuleRights{Provider: "AWS", Actions: []string{"ec2:RunInstances"}}
	spec := loaded.Variable(module.VariableProviderSpec).Type.WithoutOptionalAttributesDeep()
	disk := cty.ObjectVal(map[string]cty.Value{"gib": cty.NumberIntVal(1)})
	for name, tc := range map[string]struct {
		disks cty.Value
		name  cty.Value
		want  int
	}{
		"it holds":                       {cty.ListVal([]cty.Value{disk}), cty.StringVal("worker"), 2},
		"it does not":                    {cty.ListValEmpty(disk.Type()), cty.StringVal("worker"), 1},
		"it depends on what is unknown":  {cty.ListVal([]cty.Value{disk}), cty.UnknownVal(cty.String), 1},
		"it is false whatever is known":  {cty.ListValEmpty(disk.Type()), cty.UnknownVal(cty.String), 1},
		"it cannot be evaluated at all":  {cty.NullVal(cty.List(disk.Type())), cty.StringVal("worker"), 1},
		"another part of it is not true": {cty.ListVal([]cty.Value{disk}), cty.StringVal("spare"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			fields := map[string]cty.Value{}
			for field, constraint := range spec.AttributeTypes() {
				fields[field] = cty.NullVal(constraint)
			}
			fields["disks"] = tc.disks
			machine := map[string]cty.Value{"name": tc.name}
			got := loaded.Rights(map[string]cty.Value{module.VariableProviderSpec: cty.ObjectVal(fields), module.VariableMachine: cty.ObjectVal(machine)})
			if len(got) != tc.want {
				t.Fatalf("got %v, want %d", got, tc.want)
			}
			if diff := cmp.Diff(always, got[0]); diff != "" {
				t.Errorf("what is always needed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsOfRightsAreChecked(t *testing.T) {
	const at = "module.yaml:27: spec.rights[1].when "
	for name, tc := range map[string]struct{ condition, want string }{
		"no HCL":               {`"length(("`, at + "is not valid HCL: "},
		"no variable":          {`"true"`, at + "refers to no variable, or to something else; refer only to var.provider_spec, var.machine and var.cluster"},
		"a resource":           {"example_instance.this.id == var.machine.name", at + "refers to no variable, or to something else"},
		"user data":            {`var.user_data == ""`, at + "refers to var.user_data, which cannot be evaluated before a run"},
		"a field that is none": {"var.provider_spec.discs == null", at + "refers to var.provider_spec.discs, which does not exist"},
		"no bool":              {"var.provider_spec.disks", at + "does not return bool; use an expression that returns true or false"},
		"a function of time":   {`timestamp() == var.machine.name`, at + "calls timestamp, which cannot be evaluated before a run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, needing(tc.condition))))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
