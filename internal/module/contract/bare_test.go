package contract_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// checked is the change that gives the module an instance check.
var checked = moduletest.Change{"module.yaml", "  capacity:\n", "  instanceCheck: {intervalSeconds: 480}\n  capacity:\n"}

// read returns HCL, and the titles of its blocks.
func read(t *testing.T, hcl []byte) (body *hclsyntax.Body, titles []string) {
	t.Helper()
	body = contract.ParseHCL(hcl, "bare.tf", &contract.Report{})
	if body == nil {
		t.Fatalf("it does not parse:\n%s", hcl)
	}
	for _, block := range body.Blocks {
		titles = append(titles, contract.Title(block))
	}
	return body, titles
}

func TestABareRootHasTheProvidersAndWhatTheyAreMadeOf(t *testing.T) {
	bare := moduletest.Load(t, moduletest.Change{"providers.tf", "", `locals {
  unrelated = example_instance.this.id
  region    = local.regions[var.provider_spec.size]
  regions = { # a comment
    small = file("${path.module}/regions")
  }
}

provider "example" {
  region = local.region
  dynamic "endpoint" {
    for_each = toset([var.machine.name])
    content { name = endpoint.value }
  }
  dynamic "endpoint" {
    for_each = toset([var.machine.name])
    iterator = second
    content { name = second.value }
  }
}
`}, moduletest.Change{"regions", "", "north"}).Bare()
	body, titles := read(t, bare.HCL)
	want := []string{"terraform", `provider "example"`, `variable "machine"`, `variable "provider_spec"`, "locals"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	locals := slices.Sorted(maps.Keys(body.Blocks[4].Body.Attributes))
	if diff := cmp.Diff([]string{"region", "regions"}, locals); diff != "" {
		t.Errorf("locals (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"machine", "provider_spec"}, bare.Variables); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// A validation of what a provider depends on keeps stored inputs from leading it elsewhere. Any other demands what a
// destroy does without.
func TestABareRootHasTheValidationsOfWhatItsProvidersAreMadeOf(t *testing.T) {
	const validations = `  validation {
    condition     = var.provider_spec.size != ""
    error_message = "of the provider"
  }
  validation {
    condition     = var.provider_spec.size != "" || var.user_data != ""
    error_message = "of user data too"
  }
  validation {
    condition     = length(var.provider_spec.disks) > 0
    error_message = "of something else"
  }
  validation {
    condition     = var.provider_spec != null
    error_message = "of all of it"
  }
`
	const provider, described = "provider \"example\" {\n  region = var.provider_spec.size\n}\n", `  description = "The fields`
	bare := moduletest.Load(t, moduletest.Change{"providers.tf", "", provider},
		moduletest.Change{"variables.tf", described, validations + described}).Bare()
	body, _ := read(t, bare.HCL)
	var kept []string
	for _, inner := range body.Blocks[2].Body.Blocks {
		message, _ := inner.Body.Attributes["error_message"].Expr.Value(nil)
		kept = append(kept, message.AsString())
	}
	if diff := cmp.Diff([]string{"of the provider", "of all of it"}, kept); diff != "" {
		t.Errorf("validations (-want +got):\n%s", diff)
	}
	if body.Blocks[2].Body.Attributes["type"] == nil {
		t.Errorf("the variable has lost its type:\n%s", bare.HCL)
	}
}

func TestABareRootOfAModuleWithoutProviderBlocksHasNoVariables(t *testing.T) {
	bare := moduletest.Load(t).Bare()
	if _, titles := read(t, bare.HCL); len(titles) != 1 || len(bare.Variables) > 0 {
		t.Errorf("it has %v and the variables %v, want the terraform block alone", titles, bare.Variables)
	}
}

func TestAModuleWithoutAnInstanceCheckHasNoInterval(t *testing.T) {
	if interval := moduletest.Load(t).LookInterval(); interval != 0 {
		t.Errorf("got %s, want none", interval)
	}
	if interval := moduletest.Load(t, checked).LookInterval(); interval != 8*time.Minute {
		t.Errorf("got %s, want 8m", interval)
	}
}

func TestLoadRefusesAProviderThatADestroyCannotMake(t *testing.T) {
	made := func(of string) string {
		return " depends on " + of + ", which a destroy does not have; use only variables other than user_data, " +
			"and locals that depend on those; credentials are in the environment"
	}
	provider := func(of, more string) moduletest.Change {
		return moduletest.Change{"providers.tf", "", "provider \"example\" {\n  region = " + of + "\n}\n" + more}
	}
	interval := func(seconds string) moduletest.Change {
		return moduletest.Change{"module.yaml", "  capacity:\n", "  instanceCheck: {intervalSeconds: " + seconds + "}\n  capacity:\n"}
	}
	const example, ofInstance = `provider "example"`, "locals {\n  region = example_instance.this.id\n}\n"
	tests := map[string]struct {
		change moduletest.Change
		want   string
	}{
		"looked at too often":   {interval("59"), "module.yaml:23: spec.instanceCheck.intervalSeconds is 59; write 60 to 86400"},
		"looked at too seldom":  {interval("86401"), "module.yaml:23: spec.instanceCheck.intervalSeconds is 86401; write 60 to 86400"},
		"made of a data source": {provider("data.example_region.this.id", ""), "providers.tf:2: " + example + made("data.example_region.this.id")},
		"made of the instance":  {provider("local.region", ofInstance), "providers.tf:5: " + example + made("example_instance.this.id")},
		"made of user data":     {provider("var.user_data", ""), "providers.tf:2: " + example + made("var.user_data")},
		"made of nothing":       {provider("local.region", ""), "providers.tf:2: " + example + made("local.region")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, tc.change)))
			var broken *contract.Error
			if !errors.As(err, &broken) {
				t.Fatalf("got %v, want a breach of the contract", err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want %q in it", err, tc.want)
			}
		})
	}
}

func TestOutputsThatAreOptionalArePublishedToo(t *testing.T) {
	for _, name := range []string{"interruptible", "outlives"} {
		block := "output \"" + name + "\" {\n  description = \"Optional.\"\n  value = null\n}\n"
		moduletest.Load(t, moduletest.Change{"more.tf", "", block})
		_, err := load.Module(moduletest.FS(moduletest.Changed(t, moduletest.Change{"more.tf", "", strings.Replace(block, "value", "sensitive = true\n  value", 1)})))
		want := `more.tf:1: output "` + name + `" is sensitive, but it is published on the Machine; remove sensitive`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTheProviderStatusNamesOutputsThatAreNotSensitive(t *testing.T) {
	block := "output \"vm_id\" {\n  description = \"Optional.\"\n  value = null\n}\n"
	declare := func(status string) moduletest.Change {
		return moduletest.Change{"module.yaml", "spec:\n", "spec:\n  providerStatus: " + status + "\n"}
	}
	const named = "apiVersion: acme.example/v1, kind: AcmeStatus"
	moduletest.Load(t, declare("{"+named+", fields: {vmId: vm_id}}"), moduletest.Change{"more.tf", "", block})
	for want, changes := range map[string][]moduletest.Change{
		`providerStatus.apiVersion is "v1"; write it as group/version`: {declare("{apiVersion: v1, kind: AcmeStatus}")},
		`providerStatus.kind is empty; name the type's kind`:           {declare("{apiVersion: acme.example/v1}")},
		`providerStatus.fields has run, which every provider status has; remove it`: {
			declare("{" + named + ", fields: {run: zone}}")},
		`providerStatus.fields names the output "vm_id" for vmId, which is missing; declare the output`: {
			declare("{" + named + ", fields: {vmId: vm_id}}")},
		`more.tf:1: output "vm_id" is sensitive, but it is published on the Machine; remove sensitive`: {
			declare("{" + named + ", fields: {vmId: vm_id}}"),
			{"more.tf", "", strings.Replace(block, "value", "sensitive = true\n  value", 1)}},
	} {
		_, err := load.Module(moduletest.FS(moduletest.Changed(t, changes...)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
