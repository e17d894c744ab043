package contract_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/moduletest"
)

// checked is the change that gives the module an instance check.
var checked = moduletest.Change{"module.yaml", "  capacity:\n", "  instanceCheck: {intervalSeconds: 480}\n  capacity:\n"}

func TestAnInstanceCheckHasTheProvidersAndWhatTheyNeed(t *testing.T) {
	loaded := moduletest.Load(t, checked,
		moduletest.Change{"providers.tf", "", `locals {
  unrelated = example_instance.this.id
  region    = local.regions[var.provider_spec.size]
  regions = { # a comment
    small = "north"
  }
}

provider "example" {
  region = local.region
  dynamic "endpoint" {
    for_each = toset([var.machine.name])
    content { name = each.value }
  }
}
`})
	hcl, interval := loaded.InstanceCheck()
	if interval != 8*time.Minute {
		t.Errorf("the interval is %s, want 8m", interval)
	}
	body := contract.ParseHCL(hcl, "check.tf", &contract.Report{})
	if body == nil {
		t.Fatalf("it does not parse:\n%s", hcl)
	}
	var blocks []string
	locals := map[string]bool{}
	for _, block := range body.Blocks {
		blocks = append(blocks, contract.Title(block))
		for name := range block.Body.Attributes {
			if block.Type == "locals" {
				locals[name] = true
			}
		}
	}
	want := []string{"terraform", `variable "machine"`, `variable "provider_spec"`, `variable "user_data"`, `provider "example"`, "locals"}
	if diff := cmp.Diff(want, blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"region": true, "regions": true}, locals); diff != "" {
		t.Errorf("locals (-want +got):\n%s", diff)
	}
}

func TestAModuleWithoutAnInstanceCheckHasNoInterval(t *testing.T) {
	if hcl, interval := moduletest.Load(t).InstanceCheck(); hcl != nil || interval != 0 {
		t.Errorf("got %q and %s, want nothing", hcl, interval)
	}
}

func TestLoadRefusesAnInstanceCheckThatCannotWork(t *testing.T) {
	const needsMore = "or a local that a provider needs refers to more than variables and locals, so that spec.instanceCheck has no provider to look with; " +
		"make the provider's arguments of variables alone, or remove spec.instanceCheck"
	tests := map[string]struct {
		changes []moduletest.Change
		want    string
	}{
		"too often": {
			changes: []moduletest.Change{{"module.yaml", "  capacity:\n", "  instanceCheck: {intervalSeconds: 59}\n  capacity:\n"}},
			want:    "module.yaml:23: spec.instanceCheck.intervalSeconds is 59; write 60 to 86400",
		},
		"too seldom": {
			changes: []moduletest.Change{{"module.yaml", "  capacity:\n", "  instanceCheck: {intervalSeconds: 86401}\n  capacity:\n"}},
			want:    "module.yaml:23: spec.instanceCheck.intervalSeconds is 86401; write 60 to 86400",
		},
		"the provider asks a data source": {
			changes: []moduletest.Change{checked, {"providers.tf", "", "provider \"example\" {\n  region = data.example_region.this.id\n}\n"}},
			want:    `providers.tf:1: provider "example" ` + needsMore,
		},
		"a local of the provider needs the instance": {
			changes: []moduletest.Change{checked, {"providers.tf", "", "provider \"example\" {\n  region = local.region\n}\nlocals {\n  region = example_instance.this.id\n}\n"}},
			want:    `providers.tf:1: provider "example" ` + needsMore,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, tc.changes...)))
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
