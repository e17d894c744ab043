package render

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// clusterAware returns moduletest's module with the variable cluster, and a check and a validation that use it.
func clusterAware(t *testing.T) *module.Module {
	t.Helper()
	return moduletest.Load(t, moduletest.Change{"variables.tf", `  description = "The fields of the providerSpec."`,
		`  description = "The fields of the providerSpec."
  validation {
    condition     = var.cluster.platform == null || var.provider_spec.size != var.cluster.platform
    error_message = "Name another size."
  }`}, moduletest.Change{"variables.tf", "  sensitive   = true\n}\n", `  sensitive   = true
}

variable "cluster" {
  type        = object({ platform = optional(string), resource_tags = optional(list(object({ key = string, value = string })), []) })
  description = "The cluster."
  default     = {}
}
`}, moduletest.Change{"checks.tf", "", `check "tags" {
  assert {
    condition     = length(var.cluster.resource_tags) < 2 || var.provider_spec.size == "small"
    error_message = "There are ${length(var.cluster.resource_tags)} tags."
  }
}
`})
}

func TestAModuleSeesWhatItDeclaresOfTheCluster(t *testing.T) {
	input := inputWith(t, strings.Replace(valid, "small", "large", 1)+"}")
	input.Module = clusterAware(t)
	without, err := Render(input)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"cluster":{"platform":null,"resource_tags":[]}`; !strings.Contains(string(without.Variables), want) {
		t.Errorf("%s has not %s", without.Variables, want)
	}
	input.Cluster = &module.Cluster{Platform: "AWS", Region: "r",
		ResourceTags: []module.ResourceTag{{Key: "a", Value: "b"}, {Key: "c", Value: "d"}}}
	with, err := Render(input)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"cluster":{"platform":"AWS","resource_tags":[{"key":"a","value":"b"},{"key":"c","value":"d"}]}`; !strings.Contains(string(with.Variables), want) {
		t.Errorf("%s has not %s", with.Variables, want)
	}
	if with.Hash == without.Hash {
		t.Error("the hash is the same")
	}
	if len(with.Warnings) != 1 || with.Warnings[0].Message != "There are 2 tags." {
		t.Errorf("the warnings are %v", with.Warnings)
	}
	variables, err := Variables(input)
	if err != nil || string(variables) != string(with.Variables) {
		t.Errorf("the variables of a preview are %s, %v", variables, err)
	}
	input.Cluster.Region, input.Cluster.Installation = "other", "uid" // modules from before declare no installation
	if again, err := Render(input); err != nil || again.Hash != with.Hash {
		t.Errorf("the hash covers what the module does not declare: %v", err)
	}
}

func TestWithoutTheVariableTheClusterMakesNoDifference(t *testing.T) {
	input := inputWith(t, valid+"}")
	before, err := Render(input)
	if err != nil {
		t.Fatal(err)
	}
	input.Cluster = &module.Cluster{Platform: "AWS", Installation: "uid"}
	if after, err := Render(input); err != nil || after.Hash != before.Hash {
		t.Errorf("the hash differs: %v", err)
	}
}

func TestAValidationMayReferToTheCluster(t *testing.T) {
	input := inputWith(t, strings.Replace(valid, "small", "AWS", 1)+"}")
	input.Module, input.Cluster = clusterAware(t), &module.Cluster{Platform: "AWS"}
	_, err := Check(input)
	want := `spec.providerSpec.value.size: the module "example" does not allow "AWS" with cluster.platform "AWS"; Name another size.`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
