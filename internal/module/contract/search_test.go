package contract_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestAModuleMayHaveEverySearch(t *testing.T) {
	loaded := moduletest.Load(t, moduletest.WithSearches()...)
	for name, files := range map[string][2][]string{
		"lookup":    {{"lookup/import.tf"}, loaded.LookupFiles()},
		"adopt":     {{"adopt/import.tf"}, loaded.AdoptFiles()},
		"inventory": {{"inventory/inventory.tf"}, loaded.InventoryFiles()},
		"capacity":  {{"capacity/capacity.tf"}, loaded.CapacityFiles()},
		"creates":   {{"example_disk"}, loaded.AdoptCreates()},
	} {
		if diff := cmp.Diff(files[0], files[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if !loaded.AdoptAbsent("instance not there") || loaded.AdoptAbsent("no such instance") || loaded.Absent("instance not there") {
		t.Error("the words for absence are those of another search")
	}
	without := moduletest.Load(t)
	if len(without.AdoptFiles())+len(without.InventoryFiles())+len(without.AdoptCreates()) != 0 {
		t.Error("want nothing where there is neither adopt/ nor inventory/")
	}
	if without.Digest() == loaded.Digest() {
		t.Error("the searches are part of the content")
	}
	restored, err := load.Restore(loaded.Files())
	if err != nil {
		t.Fatal(err)
	}
	if restored.Digest() != loaded.Digest() || len(restored.AdoptFiles()) != 1 || len(restored.InventoryFiles()) != 1 || !restored.AdoptAbsent("not there") {
		t.Error("a module that was stored has other searches")
	}
}

func TestLoadRefusesASearchThatBreaksTheContract(t *testing.T) {
	const adopt, inventory = "adopt/import.tf", "inventory/inventory.tf"
	for name, tc := range map[string]struct {
		change moduletest.Change
		want   string // the whole text of the only breach
	}{
		"an adoption that module.yaml does not declare": {
			change: moduletest.Change{"module.yaml", "  adopt:\n    absent: ['not there']\n    creates: [example_disk]\n", ""},
			want:   "adopt/import.tf: exists, but module.yaml has no spec.adopt; add spec.adopt: {}",
		},
		"a declared adoption without files": {
			change: moduletest.Change{adopt, "", ""},
			want:   "module.yaml:20: spec.adopt is set, but adopt/ has no .tf file; add adopt/import.tf, or remove spec.adopt",
		},
		"an adoption by the providerSpec": {
			change: moduletest.Change{adopt, "id = data.example_instance.adopted.id", "id = var.provider_spec.size"},
			want:   "adopt/import.tf:12: import refers to var in id; base IDs on var.adopt and var.machine, or from data sources and locals",
		},
		"an adoption without an id": {
			change: moduletest.Change{adopt, "  id = data.example_instance.adopted.id\n", ""},
			want:   "adopt/import.tf:10: import has no id; add id = ... based on var.adopt",
		},
		"an adoption of something else": {
			change: moduletest.Change{adopt, "to = example_instance.this", "to = example_disk.more"},
			want:   "adopt/import.tf: does not import anything to example_instance.this; add import { to = example_instance.this, id = ... }",
		},
		"an adoption that makes things": {
			change: moduletest.Change{adopt, "check \"size\"", "resource \"example_disk\" \"x\" {}\n\ncheck \"size\""},
			want:   `adopt/import.tf:15: resource "example_disk" "x" does not belong in an adoption; use import, data, locals, check and variable only`,
		},
		"an adoption by a provider that is not required": {
			change: moduletest.Change{adopt, "check \"size\" {", "check \"size\" {\n  data \"null_data_source\" \"x\" {}"},
			want: `adopt/import.tf:16: data "null_data_source" "x" uses the provider "null", which terraform.tf does not require; ` +
				"add it to required_providers and to the lock file",
		},
		"an adoption file that hides a file of the module": {
			change: moduletest.Change{"import.tf", "", "# nothing\n"},
			want: "adopt/import.tf: has the same name as a file of the module, which is linked into the same folder; rename it\n" +
				"lookup/import.tf: has the same name as a file of the module, which is linked into the same folder; rename it",
		},
		"an adoption that sets variables": {
			change: moduletest.Change{"adopt/x.auto.tfvars", "", "user_data = \"\"\n"},
			want:   "adopt/x.auto.tfvars: sets variables, which only the operator may do; remove it",
		},
		"no variable adopt": {
			change: moduletest.Change{adopt, `variable "adopt"`, `variable "other"`},
			want: "adopt/import.tf: variable \"adopt\" is missing; declare it in adopt/import.tf\n" +
				`adopt/import.tf:1: variable "other" is not part of the contract; remove it; the only variable of adopt/ is "adopt"`,
		},
		"a second variable adopt": {
			change: moduletest.Change{"adopt/more.tf", "", "variable \"adopt\" {\n  type        = object({ provider_id = string, id = string })\n  description = \"x\"\n}\n"},
			want:   `adopt/more.tf:1: variable "adopt" is declared twice; keep one`,
		},
		"a variable adopt of another type": {
			change: moduletest.Change{adopt, "id = string })", "id = optional(string) })"},
			want:   `adopt/import.tf:2: variable "adopt" has a different type than the contract requires; write type = object({ provider_id = string, id = string })`,
		},
		"a variable adopt without type": {
			change: moduletest.Change{adopt, "  type        = object({ provider_id = string, id = string })\n", ""},
			want:   `adopt/import.tf:1: variable "adopt" has no type; write type = object({ provider_id = string, id = string })`,
		},
		"a variable adopt without description": {
			change: moduletest.Change{adopt, "  description = \"Which instance is adopted.\"\n", ""},
			want:   `adopt/import.tf:1: variable "adopt" has no description; add description = "..." with a literal text`,
		},
		"a variable adopt with a default": {
			change: moduletest.Change{adopt, "  description", "  default     = null\n  description"},
			want:   `adopt/import.tf:3: variable "adopt" has the argument default; remove it: the operator always sets both fields`,
		},
		"a variable adopt that refuses": {
			change: moduletest.Change{adopt, "adopted.\"\n", "adopted.\"\n  validation {\n    condition     = true\n    error_message = \"x\"\n  }\n"},
			want:   `adopt/import.tf:4: variable "adopt" has a validation; write a postcondition in the data source that finds the instance`,
		},
		"an adoption may create what the module has not": {
			change: moduletest.Change{"module.yaml", "[example_disk]", "[example_port]"},
			want:   `module.yaml:22: spec.adopt.creates[0] is "example_port", which is not the type of a resource of the module; use the type of a resource that cannot be imported`,
		},
		"an adoption may create the instance": {
			change: moduletest.Change{"module.yaml", "[example_disk]", "[example_instance]"},
			want:   "module.yaml:22: spec.adopt.creates[0] names example_instance, the type of the instance, which is imported or not adopted; remove it",
		},
		"an adoption may create what is in the state only": {
			change: moduletest.Change{"module.yaml", "[example_disk]", "[terraform_data]"},
			want:   "module.yaml:22: spec.adopt.creates[0] names terraform_data, which exists only in the state; remove it: an adoption may always create it",
		},
		"an adoption may create a type twice": {
			change: moduletest.Change{"module.yaml", "[example_disk]", "[example_disk, example_disk]"},
			want:   "module.yaml:22: spec.adopt.creates[1] names example_disk twice; keep one",
		},
		"every error means that there is nothing to adopt": {
			change: moduletest.Change{"module.yaml", "'not there'", "'.*'"},
			want: "module.yaml:21: spec.adopt.absent[0] matches every text, so every error would mean that there is no instance; " +
				"match the words with which the provider says that the object does not exist",
		},
		"an inventory that module.yaml does not declare": {
			change: moduletest.Change{"module.yaml", "  inventory: {}\n", ""},
			want:   "inventory/inventory.tf: exists, but module.yaml has no spec.inventory; add spec.inventory: {}",
		},
		"a declared inventory without files": {
			change: moduletest.Change{inventory, "", ""},
			want:   "module.yaml:23: spec.inventory is set, but inventory/ has no .tf file; add inventory/inventory.tf, or remove spec.inventory",
		},
		"an inventory that imports": {
			change: moduletest.Change{inventory, "output", "import {\n  to = example_instance.this\n  id = \"x\"\n}\noutput"},
			want:   "inventory/inventory.tf:6: import adds something to the state; remove it: an inventory only lists",
		},
		"an inventory that warns": {
			change: moduletest.Change{inventory, "output", "check \"x\" {}\noutput"},
			want:   `inventory/inventory.tf:6: check "x" does not belong in an inventory; use data, locals and output only`,
		},
		"an inventory of one Machine": {
			change: moduletest.Change{inventory, "var.machine.cluster_id", "var.machine.name"},
			want: `inventory/inventory.tf:3: data "example_instances" "cluster" refers to var.machine.name in cluster; ` +
				"use var.machine.cluster_id, var.provider_spec and var.cluster, which do not depend on the Machine",
		},
		"an inventory of what is planned": {
			change: moduletest.Change{inventory, `name = one.name`, `name = example_instance.this.name`},
			want: `inventory/inventory.tf:8: output "inventory" refers to example_instance.this.name in value; ` +
				"use var.machine.cluster_id, var.provider_spec and var.cluster, which do not depend on the Machine",
		},
		"an inventory with user data": {
			change: moduletest.Change{inventory, "  cluster ", "  lifecycle {\n    postcondition {\n      condition     = var.user_data == \"\"\n      error_message = \"x\"\n    }\n  }\n  cluster "},
			want: `inventory/inventory.tf:5: data "example_instances" "cluster" refers to var.user_data in condition; ` +
				"use var.machine.cluster_id, var.provider_spec and var.cluster, which do not depend on the Machine",
		},
		"an inventory of the whole Machine": {
			change: moduletest.Change{inventory, "var.machine.cluster_id", "jsonencode(var.machine)"},
			want: `inventory/inventory.tf:3: data "example_instances" "cluster" refers to var.machine in cluster; ` +
				"use var.machine.cluster_id, var.provider_spec and var.cluster, which do not depend on the Machine",
		},
		"an inventory without output": {
			change: moduletest.Change{inventory, `output "inventory"`, `output "list"`},
			want: "inventory/inventory.tf: output \"inventory\" is missing; declare it in inventory/inventory.tf\n" +
				`inventory/inventory.tf:6: output "list" is not part of the contract; remove it; the only output of inventory/ is "inventory"`,
		},
		"an inventory that nobody can read": {
			change: moduletest.Change{inventory, "  description", "  sensitive   = true\n  description"},
			want:   `inventory/inventory.tf:6: output "inventory" is sensitive, so the operator cannot read it; remove sensitive`,
		},
		"a size without spec.capacity": {
			change: moduletest.Change{"module.yaml", "  capacity:\n    path: size\n    instanceTypes:\n      - name: small\n        cpu: \"2\"\n        memory: 4Gi\n", ""},
			want:   "capacity/capacity.tf: exists, but module.yaml has no spec.capacity; add spec.capacity: {}",
		},
		"a size of one Machine": {
			change: moduletest.Change{"capacity/capacity.tf", "name = var.provider_spec.size", "name = var.machine.uid"},
			want: `capacity/capacity.tf:2: data "example_type" "capacity" refers to var.machine.uid in name; ` +
				"use var.machine.cluster_id, var.provider_spec and var.cluster, which do not depend on the Machine",
		},
		"a size without output": {
			change: moduletest.Change{"capacity/capacity.tf", `output "capacity"`, `output "size"`},
			want: "capacity/capacity.tf: output \"capacity\" is missing; declare it in capacity/capacity.tf\n" +
				`capacity/capacity.tf:5: output "size" is not part of the contract; remove it; the only output of capacity/ is "capacity"`,
		},
		"an inventory of nothing": {
			change: moduletest.Change{inventory, "  value ", "  values "},
			want:   `inventory/inventory.tf:6: output "inventory" has no value; add value = ...`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, append(moduletest.WithSearches(), tc.change)...)))
			var broken *contract.Error
			if !errors.As(err, &broken) {
				t.Fatalf("want a contract.Error, got %v", err)
			}
			text := ""
			for _, breach := range broken.Breaches {
				text += breach.String() + "\n"
			}
			if diff := cmp.Diff(tc.want+"\n", text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
