package contract_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestLoadRefusesABreachOfTheContract(t *testing.T) {
	tests := map[string]struct {
		changes []moduletest.Change
		want    string // the whole text of the only breach
	}{
		"module.yaml is missing": {
			changes: []moduletest.Change{{"module.yaml", "", ""}},
			want:    "module.yaml: is missing; create it; docs/contracts/module.md lists its fields",
		},
		"module.yaml has an unknown field": {
			changes: []moduletest.Change{{"module.yaml", "    keys:", "    kees: []\n    keys:"}},
			want:    `module.yaml:10: spec.credentials.kees is invalid: unknown field "spec.credentials.kees"; remove it, or correct the spelling`,
		},
		"module.yaml has another version": {
			changes: []moduletest.Change{{"module.yaml", "machine-iac.io/v1alpha1", "machine-iac.io/v2"}},
			want:    `module.yaml:1: apiVersion is "machine-iac.io/v2"; write machine-iac.io/v1alpha1`,
		},
		"the module's name is no DNS label": {
			changes: []moduletest.Change{{"module.yaml", "name: example", "name: Example_1"}},
			want:    `module.yaml:4: metadata.name is "Example_1", which is not a DNS label; use lower-case letters, digits and dashes, at most 63`,
		},
		"a served version has no group": {
			changes: []moduletest.Change{{"module.yaml", "example.io/v1,", "v1,"}},
			want:    `module.yaml:7: spec.providerSpecs[0].apiVersions[0] is "v1"; write it as group/version`,
		},
		"the kind of any module is claimed": {
			changes: []moduletest.Change{{"module.yaml", "[example.io/v1, example.io/v1beta1]\n      kind: ExampleProviderSpec", "[machine-iac.io/v1alpha1]\n      kind: TerraformMachineProviderSpec"}},
			want: "module.yaml:7: spec.providerSpecs[0].apiVersions[0] is a kind that serves every module of an engine; " +
				"remove it, or use a kind of the module's own",
		},
		"an alias is a kind": {
			changes: []moduletest.Change{{"module.yaml", "kind: ExampleProviderSpec\n", "kind: ExampleProviderSpec\n      aliases: [ExampleProviderSpec]\n"}},
			want:    `module.yaml:9: spec.providerSpecs[0].aliases[0] is "ExampleProviderSpec": an alias must not be empty or a kind of the module; remove it`,
		},
		"an alias of a field is a field": {
			changes: []moduletest.Change{{"module.yaml", "kind: ExampleProviderSpec\n", "kind: ExampleProviderSpec\n      fieldAliases: {size: disks}\n"}},
			want:    `module.yaml:9: spec.providerSpecs[0].fieldAliases has the alias "size", which is empty or a field of var.provider_spec; remove it`,
		},
		"a gate of no field": {
			changes: []moduletest.Change{{"module.yaml", "spec:\n", "spec:\n  featureGates: {sise: Sizes}\n"}},
			want:    `module.yaml:6: spec.featureGates has "sise", which is not a field of var.provider_spec or has no gate; map the path of a field, joined by dots, to a feature gate`,
		},
		"an alias of no field": {
			changes: []moduletest.Change{{"module.yaml", "kind: ExampleProviderSpec\n", "kind: ExampleProviderSpec\n      fieldAliases: {flavor: sise}\n"}},
			want:    `module.yaml:9: spec.providerSpecs[0].fieldAliases maps flavor to "sise", which is not a top-level field of var.provider_spec; name a field`,
		},
		"the kind of any stack is claimed": {
			changes: []moduletest.Change{{"module.yaml", "[example.io/v1, example.io/v1beta1]\n      kind: ExampleProviderSpec", "[machine-iac.io/v1alpha1]\n      kind: PulumiMachineProviderSpec"}},
			want: "module.yaml:7: spec.providerSpecs[0].apiVersions[0] is a kind that serves every module of an engine; " +
				"remove it, or use a kind of the module's own",
		},
		"the instance is not given the UID that identifies it": {
			changes: []moduletest.Change{{"main.tf", "uid = var.machine.uid }", "uid = var.machine.name }"}},
			want: `main.tf:1: resource "example_instance" "this" does not get the UID of its Machine, which it must carry according to spec.identity of module.yaml; ` +
				"set var.machine.uid where spec.identity reads it",
		},
		"an engine that there is not": {
			changes: []moduletest.Change{{"module.yaml", "spec:\n", "spec:\n  engine: Ansible\n"}},
			want:    `module.yaml:6: spec.engine is "Ansible", which is not an engine; write Terraform or Pulumi; the default is Terraform`,
		},
		"a module with a kind of its own has no field for the credentials": {
			changes: []moduletest.Change{{"variables.tf", "    credentialsSecret = object({ name = string })\n", ""}},
			want: `module.yaml:9: spec.credentials.path is "credentialsSecret.name", which is not a string field of var.provider_spec; ` +
				"write the path of the field, joined by dots",
		},
		"a module without a kind of its own has a field for the credentials that is no text": {
			changes: []moduletest.Change{
				{"module.yaml", "  providerSpecs:\n    - apiVersions: [example.io/v1, example.io/v1beta1]\n      kind: ExampleProviderSpec\n", ""},
				{"variables.tf", "credentialsSecret = object({ name = string })", "credentialsSecret = object({ name = number })"},
			},
			want: `module.yaml:6: spec.credentials.path is "credentialsSecret.name", which is not a string field of var.provider_spec; ` +
				"write the path of the field, joined by dots",
		},
		"a variable of the engine is set": {
			changes: []moduletest.Change{{"module.yaml", "EXAMPLE_QUIET", "TF_LOG"}},
			want:    "module.yaml:18: spec.environment[0].name is TF_LOG, which controls the engine and is reserved for the operator; use a variable that the provider reads",
		},
		"a key gives way to none that there is": {
			changes: []moduletest.Change{{"module.yaml", "env: EXAMPLE_TOKEN", "env: EXAMPLE_TOKEN\n        unless: tokens"}},
			want:    `module.yaml:13: spec.credentials.keys[0].unless is "tokens", which is not another of the keys; use one of spec.credentials.keys, without fields in it`,
		},
		"a key gives way to itself": {
			changes: []moduletest.Change{{"module.yaml", "env: EXAMPLE_TOKEN", "env: EXAMPLE_TOKEN\n        unless: token"}},
			want:    `module.yaml:13: spec.credentials.keys[0].unless is "token", which is not another of the keys; use one of spec.credentials.keys, without fields in it`,
		},
		"what a value matches is no expression": {
			changes: []moduletest.Change{{"module.yaml", "env: EXAMPLE_TOKEN", "env: EXAMPLE_TOKEN\n        matches: ['a', '(']"}},
			want:    "module.yaml:13: spec.credentials.keys[0].matches[1] is not a regular expression: error parsing regexp: missing closing ): `(`; use RE2 syntax",
		},
		"a variable is from nowhere": {
			changes: []moduletest.Change{{"module.yaml", `value: "true"`, `from: serviceEndpoint.gcp.compute`}},
			want: `module.yaml:19: spec.environment[0].from is "serviceEndpoint.gcp.compute", which the cluster's configuration does not contain; ` +
				"use caBundleFile, azureCloud, azureResourceManagerHost, prismCentralAddress, prismCentralPort or serviceEndpoint.PLATFORM.SERVICE with the platform aws, ibmcloud or powervs",
		},
		"a variable has a value from two places": {
			changes: []moduletest.Change{{"module.yaml", `value: "true"`, "value: \"true\"\n      from: caBundleFile"}},
			want:    "module.yaml:20: spec.environment[0].from is set in addition to a value; keep one of both",
		},
		"a path of a key has a step without a name": {
			changes: []moduletest.Change{{"module.yaml", "env: EXAMPLE_TOKEN", "env: EXAMPLE_TOKEN\n        path: [a, '']"}},
			want:    "module.yaml:13: spec.credentials.keys[0].path has an empty step; write the names and indices that lead to the value",
		},
		"a constant stands for an optional key": {
			changes: []moduletest.Change{{"module.yaml", "EXAMPLE_QUIET", "EXAMPLE_REGION"}},
			want:    "module.yaml:18: spec.environment[0].name sets EXAMPLE_REGION, which spec.credentials.keys[1].env sets too; keep one",
		},
		"the cluster stands for a key that there must be": {
			changes: []moduletest.Change{{"module.yaml", "- name: EXAMPLE_QUIET\n      value: \"true\"", "- name: EXAMPLE_TOKEN\n      from: azureCloud"}},
			want:    "module.yaml:18: spec.environment[0].name sets EXAMPLE_TOKEN, which spec.credentials.keys[0].env sets too; keep one",
		},
		"two keys feed one variable": {
			changes: []moduletest.Change{{"module.yaml", "EXAMPLE_REGION", "EXAMPLE_TOKEN"}},
			want:    "module.yaml:14: spec.credentials.keys[1].env sets EXAMPLE_TOKEN, which spec.credentials.keys[0].env sets too; keep one",
		},
		"a key becomes a value and a file": {
			changes: []moduletest.Change{{"module.yaml", "env: EXAMPLE_TOKEN", "env: EXAMPLE_TOKEN\n        file: EXAMPLE_TOKEN_FILE"}},
			want:    "module.yaml:13: spec.credentials.keys[0].file is EXAMPLE_TOKEN_FILE, but env is EXAMPLE_TOKEN; keep one: a provider reads either the value or a file",
		},
		"a key becomes nothing": {
			changes: []moduletest.Change{{"module.yaml", "        env: EXAMPLE_TOKEN\n", ""}},
			want:    `module.yaml:11: spec.credentials.keys[0].env is "", which is not a valid name of an environment variable; use letters, digits and '_'`,
		},
		"the engine would be steered by a file": {
			changes: []moduletest.Change{{"module.yaml", "env: EXAMPLE_TOKEN", "file: TF_CLI_CONFIG_FILE"}},
			want:    "module.yaml:12: spec.credentials.keys[0].file is TF_CLI_CONFIG_FILE, which controls the engine and is reserved for the operator; use a variable that the provider reads",
		},
		"a value and a file in one variable": {
			changes: []moduletest.Change{{"module.yaml", "env: EXAMPLE_REGION", "file: EXAMPLE_TOKEN"}},
			want:    "module.yaml:14: spec.credentials.keys[1].file sets EXAMPLE_TOKEN, which spec.credentials.keys[0].env sets too; keep one",
		},
		"the credentials path leads nowhere": {
			changes: []moduletest.Change{{"module.yaml", "    keys:", "    path: secret.name\n    keys:"}},
			want:    `module.yaml:10: spec.credentials.path is "secret.name", which is not a string field of var.provider_spec; write the path of the field, joined by dots`,
		},
		"a pattern for absence matches everything": {
			changes: []moduletest.Change{{"module.yaml", "'no such instance'", "'.*'"}},
			want:    "module.yaml:22: spec.lookup.absent[0] matches every text, so every error would mean that there is no instance; match the words with which the provider says that the object does not exist",
		},
		"a lookup that settles in the past": {
			changes: []moduletest.Change{{"module.yaml", "  lookup:\n", "  lookup:\n    settleSeconds: -1\n"}},
			want:    "module.yaml:21: spec.lookup.settleSeconds is -1; write 0 to 3600, or remove it",
		},
		"a lookup that settles too late": {
			changes: []moduletest.Change{{"module.yaml", "  lookup:\n", "  lookup:\n    settleSeconds: 3601\n"}},
			want:    "module.yaml:21: spec.lookup.settleSeconds is 3601; write 0 to 3600, or remove it",
		},
		"a final error is no expression": {
			changes: []moduletest.Change{{"module.yaml", "  capacity:\n", "  errors: {final: ['(']}\n  capacity:\n"}},
			want:    "module.yaml:23: spec.errors.final[0] is not a regular expression: error parsing regexp: missing closing ): `(`; use RE2 syntax",
		},
		"a final error is empty": {
			changes: []moduletest.Change{{"module.yaml", "  capacity:\n", "  errors: {final: [a, '']}\n  capacity:\n"}},
			want: "module.yaml:23: spec.errors.final[1] matches every text, so every error would fail the Machine for good; " +
				"match the words with which the infrastructure rejects what it will never accept",
		},
		"a final error matches no text at all": {
			changes: []moduletest.Change{{"module.yaml", "  capacity:\n", "  errors:\n    final:\n      - 'a*'\n  capacity:\n"}},
			want: "module.yaml:25: spec.errors.final[0] matches every text, so every error would fail the Machine for good; " +
				"match the words with which the infrastructure rejects what it will never accept",
		},
		"a capacity without memory": {
			changes: []moduletest.Change{{"module.yaml", "memory: 4Gi", `memory: "0"`}},
			want:    `module.yaml:28: spec.capacity.instanceTypes[0].memory is not positive; write the memory, for example "16Gi"`,
		},
		"a variable is missing": {
			changes: []moduletest.Change{{"variables.tf", `variable "user_data" {`, `variable "userdata" {`}},
			want: `variables.tf: variable "user_data" is missing; declare it` + "\n" +
				`variables.tf:22: variable "userdata" is not part of the contract; remove it; what users can set are fields of provider_spec`,
		},
		"the type of machine differs": {
			changes: []moduletest.Change{{"variables.tf", "uid        = string", "uid        = number"}},
			want:    `variables.tf:1: variable "machine" has a different type than the contract requires; write type = object({ name = string, namespace = string, uid = string, cluster_id = string, labels = map(string) })`,
		},
		"provider_spec holds any": {
			changes: []moduletest.Change{{"variables.tf", "list(object({ gib = number }))", "list(any)"}},
			want:    `variables.tf:12: variable "provider_spec" contains the type any, so a providerSpec cannot be checked before a run; use a specific type`,
		},
		"provider_spec has a field of the object itself": {
			changes: []moduletest.Change{{"variables.tf", "size              = string", "size              = string\n    kind = string"}},
			want:    `variables.tf:12: variable "provider_spec" has the field kind, which belongs to the object itself; remove it`,
		},
		"user_data is not sensitive": {
			changes: []moduletest.Change{{"variables.tf", "sensitive   = true", "sensitive   = false"}},
			want:    `variables.tf:22: variable "user_data" is not sensitive; add sensitive = true`,
		},
		"a variable without type": {
			changes: []moduletest.Change{{"variables.tf", "  type        = string\n", ""}},
			want:    `variables.tf:22: variable "user_data" has no type; add type = ...`,
		},
		"a variable without description": {
			changes: []moduletest.Change{{"variables.tf", `"The fields of the providerSpec."`, `" "`}},
			want:    `variables.tf:12: variable "provider_spec" has no description; add description = "..." with a literal text`,
		},
		"an output is missing": {
			changes: []moduletest.Change{{"outputs.tf", "", moduletest.OutputBlocks(moduletest.Outputs[1:]...)}},
			want:    `outputs.tf: output "provider_id" is missing; declare it`,
		},
		"an output without description": {
			changes: []moduletest.Change{{"outputs.tf", "  description = \"One of the seven.\"\n", ""}},
			want:    `outputs.tf:1: output "provider_id" has no description; add description = "..." with a literal text`,
		},
		"an output is sensitive": {
			changes: []moduletest.Change{{"outputs.tf", "  value       = \"\"\n", "  value       = \"\"\n  sensitive   = true\n"}},
			want:    `outputs.tf:1: output "provider_id" is sensitive, but it is published on the Machine; remove sensitive`,
		},
		"a backend": {
			changes: []moduletest.Change{{"terraform.tf", "  required_version", "  backend \"local\" {}\n  required_version"}},
			want:    `terraform.tf:2: backend "local" is not allowed: the operator stores the state; remove it`,
		},
		"a cloud block": {
			changes: []moduletest.Change{{"terraform.tf", "  required_version", "  cloud {}\n  required_version"}},
			want:    `terraform.tf:2: cloud is not allowed: the operator stores the state; remove it`,
		},
		"a provisioner": {
			changes: []moduletest.Change{{"main.tf", "  name =", "  provisioner \"local-exec\" {\n    command = \"id\"\n  }\n  name ="}},
			want:    `main.tf:2: provisioner "local-exec" runs programs outside of the provider; remove it; what runs on the instance is user data`,
		},
		"an external data source": {
			changes: []moduletest.Change{
				{"main.tf", "resource \"terraform_data\"", "data \"external\" \"shell\" {\n  program = [\"id\"]\n}\n\nresource \"terraform_data\""},
				{"terraform.tf", "    example = {", "    external = { source = \"hashicorp/external\", version = \"2.3.5\" }\n    example = {"},
				{".terraform.lock.hcl", "provider", "provider \"registry.opentofu.org/hashicorp/external\" {\n  version = \"2.3.5\"\n}\nprovider"},
			},
			want: `main.tf:7: data "external" "shell" runs a program; use a provider's data source`,
		},
		"a module call": {
			changes: []moduletest.Change{{"more.tf", "", "module \"vpc\" {\n  source = \"git::https://example.com/vpc.git\"\n}\n"}},
			want:    `more.tf:1: module "vpc" calls another module, which lock files do not pin; put its resources into this folder`,
		},
		"an import outside of lookup": {
			changes: []moduletest.Change{{"more.tf", "", "import {\n  to = example_instance.this\n  id = \"x\"\n}\n"}},
			want:    `more.tf:1: import would import in every run; move it to lookup/, which is used only after an interrupted create`,
		},
		"a provider that is not required": {
			changes: []moduletest.Change{{"main.tf", "\"terraform_data\" \"note\"", "\"null_resource\" \"note\""}},
			want:    `main.tf:7: resource "null_resource" "note" uses the provider "null", which terraform.tf does not require; add it to required_providers and to the lock file`,
		},
		"no instance": {
			changes: []moduletest.Change{{"main.tf", "\"this\"", "\"that\""}, {"lookup/import.tf", "", ""}, {"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""}},
			want:    `main.tf: has no resource called "this"; give that name to the resource that is the instance`,
		},
		"an instance that is counted": {
			changes: []moduletest.Change{{"main.tf", "  name =", "  count = 2\n  name ="}},
			want:    `main.tf:2: resource "example_instance" "this" is the instance, but has count; remove it: one Machine is one instance`,
		},
		"an instance of one of two types": {
			changes: []moduletest.Change{
				{"main.tf", "  name =", "  count = 1\n  name ="}, {"more.tf", "", "resource \"example_disk\" \"this\" {}\n"},
				{"lookup/import.tf", "", ""}, {"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""},
			},
			want: `more.tf:1: resource "example_disk" "this" is one of several resources called "this", without count; ` +
				`use that name for the instance only, or give each a count such that one is 1 and the others are 0`,
		},
		"an instance of a type that is known late": {
			changes: []moduletest.Change{
				{"main.tf", "  name =", "  count = 1\n  name ="},
				{"more.tf", "", "resource \"example_disk\" \"this\" {\n  count = example_disk.more.size\n}\n"},
				{"lookup/import.tf", "", ""}, {"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""},
			},
			want: `more.tf:2: resource "example_disk" "this" refers to example_disk in count; ` +
				`use only variables and locals: it must be known beforehand which resource is the instance`,
		},
		"an instance of two types, of which one is looked up": {
			changes: []moduletest.Change{
				{"main.tf", "  name =", "  count = 1\n  name ="}, {"more.tf", "", "resource \"example_disk\" \"this\" {\n  count = 0\n}\n"},
				{"lookup/import.tf", "example_instance.this", "example_instance.this[0]"},
			},
			want: "lookup/import.tf: does not import anything to example_disk.this[0]; add import { to = example_disk.this[0], id = ... }",
		},
		"an instance of each of a type": {
			changes: []moduletest.Change{{"main.tf", "  name =", "  for_each = {}\n  name ="}},
			want:    `main.tf:2: resource "example_instance" "this" is the instance, but has for_each; remove it: one Machine is one instance`,
		},
		"an instance that cannot be destroyed": {
			changes: []moduletest.Change{{"main.tf", "  name =", "  lifecycle {\n    prevent_destroy = true\n  }\n  name ="}},
			want:    `main.tf:3: resource "example_instance" "this" sets prevent_destroy, so its Machine could not be deleted; remove it`,
		},
		"the lock file is missing": {
			changes: []moduletest.Change{{".terraform.lock.hcl", "", ""}},
			want:    ".terraform.lock.hcl: is missing; create one that pins every required provider",
		},
		"a provider is not pinned": {
			changes: []moduletest.Change{{".terraform.lock.hcl", "", "# empty\n"}},
			want: `terraform.tf:4: required_providers.example is not pinned: .terraform.lock.hcl has no provider ` +
				`"registry.opentofu.org/acme/example"; add it to the lock file`,
		},
		"a provider is pinned outside of its constraint": {
			changes: []moduletest.Change{{".terraform.lock.hcl", `version     = "1.2.3"`, `version     = "1.2.4"`}},
			want: "terraform.tf:4: required_providers.example requires 1.2.3, but .terraform.lock.hcl pins 1.2.4 of registry.opentofu.org/acme/example; " +
				"make them match",
		},
		"a provider is pinned that nobody requires": {
			changes: []moduletest.Change{{".terraform.lock.hcl", "provider", "provider \"registry.opentofu.org/acme/other\" {\n  version = \"1.0.0\"\n}\nprovider"}},
			want:    `.terraform.lock.hcl:1: provider "registry.opentofu.org/acme/other" is pinned but not required; remove it, or require it in terraform.tf`,
		},
		"a version that is a path": {
			changes: []moduletest.Change{{".terraform.lock.hcl", `version     = "1.2.3"`, `version     = "../../1.2.3"`}},
			want:    `.terraform.lock.hcl:1: provider "registry.opentofu.org/acme/example" pins the version "../../1.2.3"; write an exact version, for example version = "1.19.0"`,
		},
		"no README": {
			changes: []moduletest.Change{{"README.md", "", ""}},
			want:    "README.md: is missing; write one",
		},
		"no example": {
			changes: []moduletest.Change{{"examples/machineset.yaml", "", ""}},
			want:    "examples/machineset.yaml: is missing; write one",
		},
		"no test": {
			changes: []moduletest.Change{{"tests/module.tftest.hcl", "", ""}},
			want:    "tests: has no *.tftest.hcl; write at least one test with mocked providers",
		},
		"JSON that the checks do not read": {
			changes: []moduletest.Change{{"main.tf.json", "", "{}"}},
			want:    "main.tf.json: is HCL that only some engines read, or is not in native HCL syntax; use a .tf file",
		},
		"a file that only OpenTofu reads": {
			changes: []moduletest.Change{{"main.tofu", "", "# hides main.tf\n"}},
			want:    "main.tofu: is HCL that only some engines read, or is not in native HCL syntax; use a .tf file",
		},
		"an override": {
			changes: []moduletest.Change{{"x_override.tf", "", "# nothing\n"}},
			want:    "x_override.tf: overrides other files; change those files instead",
		},
		"values for variables": {
			changes: []moduletest.Change{{"x.auto.tfvars", "", "user_data = \"\"\n"}},
			want:    "x.auto.tfvars: sets variables, which only the operator may do; remove it",
		},
		"a lookup that module.yaml does not declare": {
			changes: []moduletest.Change{{"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""}},
			want:    "lookup/import.tf: exists, but module.yaml has no spec.lookup; add spec.lookup: {}",
		},
		"a cluster variable with an attribute that there is not": {
			changes: []moduletest.Change{clusterVariable("object({ zone = optional(string) })", "{}")},
			want: `variables.tf:28: variable "cluster" has the attribute zone, which does not exist; use api_vips, cloud_name, failure_domains, ingress_vips, installation, ip_family, ` +
				`network_resource_group, platform, region, resource_labels, resource_tags`,
		},
		"a cluster variable with an attribute that is required": {
			changes: []moduletest.Change{clusterVariable("object({ region = string })", "{}")},
			want:    `variables.tf:28: variable "cluster" has the attribute region, which is not optional; write region = optional(...): a test, or an earlier version, may not set it`,
		},
		"a cluster variable with an attribute of another type": {
			changes: []moduletest.Change{clusterVariable("object({ api_vips = optional(string) })", "{}")},
			want:    `variables.tf:28: variable "cluster" has the attribute api_vips, which is not a list of string; use the type in docs/contracts/module.md`,
		},
		"a cluster variable with a part that there is not": {
			changes: []moduletest.Change{clusterVariable("object({ failure_domains = optional(list(object({ name = string, rack = string }))) })", "{}")},
			want: `variables.tf:28: variable "cluster" has the attribute failure_domains.rack, which does not exist; use compute_cluster, datacenter, datastore, folder, ` +
				`host_group, name, networks, region, resource_pool, server, template, vm_group, zone`,
		},
		"a cluster variable that is no object": {
			changes: []moduletest.Change{clusterVariable("map(string)", "{}")},
			want:    `variables.tf:28: variable "cluster" is not an object; write type = object({ ... }) with the attributes that the module needs`,
		},
		"a cluster variable with another default": {
			changes: []moduletest.Change{clusterVariable("object({ region = optional(string) })", `{ region = "r" }`)},
			want:    `variables.tf:28: variable "cluster" does not default to {}; write default = {}: inputs recorded before the module had the variable lack it`,
		},
		"a cluster variable with a validation": {
			changes: []moduletest.Change{clusterVariable("object({ region = optional(string) })", "{}\n  validation {\n    condition     = var.cluster.region != \"r\"\n    error_message = \"no\"\n  }")},
			want:    `variables.tf:32: variable "cluster" has a validation, but users cannot change it; refer to var.cluster in a validation of provider_spec`,
		},
		"what is recorded without an output that says what": {
			changes: []moduletest.Change{recordedVariable("object({ id = string })", "null")},
			want:    `outputs.tf: output "recorded" is missing; declare it with the type of var.recorded: nothing else says what is recorded`,
		},
		"an output that is recorded and nothing reads": {
			changes: []moduletest.Change{recordedOutput},
			want:    `outputs.tf: variable "recorded" is missing; declare it, or remove the unused output of that name`,
		},
		"what is recorded of any type": {
			changes: []moduletest.Change{recordedVariable("any", "null"), recordedOutput},
			want:    `variables.tf:28: variable "recorded" is not an object with known types; write type = object({ ... }) with the attributes of the output recorded`,
		},
		"what is recorded with another default": {
			changes: []moduletest.Change{recordedVariable("object({ id = string })", `{ id = "" }`), recordedOutput},
			want:    `variables.tf:28: variable "recorded" does not default to null; write default = null: nothing is recorded until the instance exists`,
		},
		"a validation by what is recorded": {
			changes: []moduletest.Change{recordedVariable("object({ id = string })", "null"), recordedOutput, {
				"variables.tf", `  description = "The fields of the providerSpec."`, `  description = "The fields of the providerSpec."

  validation {
    condition     = var.recorded == null || var.provider_spec.size != ""
    error_message = "No size."
  }`,
			}},
			want: `variables.tf:22: variable "provider_spec" validation condition refers to var.recorded, which cannot be evaluated before a run; refer only to var.machine, var.provider_spec, var.user_data and var.cluster`,
		},
		"a declared lookup without files": {
			changes: []moduletest.Change{{"lookup/import.tf", "", ""}},
			want:    "module.yaml:20: spec.lookup is set, but lookup/ has no .tf file; add lookup/import.tf, or remove spec.lookup",
		},
		"a lookup by what the user may have changed": {
			changes: []moduletest.Change{{"lookup/import.tf", "var.machine.name", "var.provider_spec.size"}},
			want:    `lookup/import.tf:3: import refers to var in id; base IDs on var.machine, or from data sources and locals`,
		},
		"a lookup that imports something else": {
			changes: []moduletest.Change{{"lookup/import.tf", "example_instance.this", "terraform_data.note"}},
			want:    "lookup/import.tf: does not import anything to example_instance.this; add import { to = example_instance.this, id = ... }",
		},
		"a lookup imports the instance as one of several": {
			changes: []moduletest.Change{{"lookup/import.tf", "example_instance.this", "example_instance.this[each.key]"}},
			want:    "lookup/import.tf: does not import anything to example_instance.this; add import { to = example_instance.this, id = ... }",
		},
		"a lookup that searches nothing": {
			changes: []moduletest.Change{{"lookup/import.tf", "import {", "locals {\n  found = local.none\n  none  = []\n}\nimport {\n  for_each = toset(local.found)"}},
			want:    `lookup/import.tf:6: import searches nothing: it reads no data source; refer to the results of a data source in for_each`,
		},
		"a lookup imports to what is computed": {
			changes: []moduletest.Change{{"lookup/import.tf", "import {", "import {\n  to = example_disk.more[var.machine.name]\n  id = \"x\"\n}\nimport {"}},
			want:    "lookup/import.tf:2: import has a target that is not the address of a single resource; write to = type.name, or type.name[each.key]",
		},
		"a lookup that makes things": {
			changes: []moduletest.Change{{"lookup/import.tf", "import {", "resource \"example_instance\" \"more\" {}\nimport {"}},
			want:    `lookup/import.tf:1: resource "example_instance" "more" does not belong in a lookup; use import, data and locals only`,
		},
		"a lookup that only warns": {
			changes: []moduletest.Change{{"lookup/import.tf", "import {", "check \"one\" {}\nimport {"}},
			want:    `lookup/import.tf:1: check "one" only warns, and the import goes on; use a postcondition in the data source`,
		},
		"a lookup file that hides a file of the module": {
			changes: []moduletest.Change{{"import.tf", "", "# nothing\n"}},
			want:    "lookup/import.tf: has the same name as a file of the module, which is linked into the same folder; rename it",
		},
		"an unknown block": {
			changes: []moduletest.Change{{"more.tf", "", "launch \"missiles\" {}\n"}},
			want:    `more.tf:1: launch "missiles" is not a block that a provider module may have; remove it`,
		},
		"brackets without end": {
			changes: []moduletest.Change{{"more.tf", "", "locals {\n  a = " + strings.Repeat("[", 200) + "\n}\n"}},
			want:    "more.tf:2: has more than 100 nested brackets; simplify it",
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

// clusterVariable returns a change that declares the variable cluster.
func clusterVariable(constraint, byDefault string) moduletest.Change {
	return variable("cluster", constraint, byDefault)
}

func recordedVariable(constraint, byDefault string) moduletest.Change {
	return variable("recorded", constraint, byDefault)
}

// recordedOutput adds the output that goes with the variable.
var recordedOutput = moduletest.Change{"outputs.tf", "", moduletest.OutputBlocks(append(slices.Clone(moduletest.Outputs), "recorded")...)}

// variable declares one more.
func variable(name, constraint, byDefault string) moduletest.Change {
	return moduletest.Change{
		"variables.tf", "  sensitive   = true\n}\n",
		"  sensitive   = true\n}\n\nvariable \"" + name + "\" {\n  type        = " + constraint + "\n  description = \"What there is.\"\n  default     = " + byDefault + "\n}\n",
	}
}

func TestAModuleMayDeclareWhatItUsesOfTheCluster(t *testing.T) {
	loaded := moduletest.Load(t,
		clusterVariable("object({\n    platform = optional(string)\n    api_vips = optional(list(string), [])\n    failure_domains = optional(list(object({ zone = string, networks = list(string) })), [])\n  })", "{}"),
		moduletest.Change{"variables.tf", `  description = "The fields of the providerSpec."`, `  description = "The fields of the providerSpec."
  validation {
    condition     = var.cluster.platform != "None" || var.provider_spec.size != ""
    error_message = "Size."
  }`})
	if got := loaded.Variable(module.VariableCluster); !got.Type.HasAttribute("failure_domains") {
		t.Errorf("its type is %#v", got.Type)
	}
}

func TestLoadListsEveryBreachAtOnce(t *testing.T) {
	_, err := load.Module(moduletest.FS(moduletest.Changed(t,
		moduletest.Change{"main.tf", "  name =", "  provisioner \"file\" {}\n  name ="},
		moduletest.Change{"variables.tf", "sensitive   = true", "sensitive   = maybe"},
		moduletest.Change{"terraform.tf", "  required_version", "  backend \"local\" {}\n  required_version"},
		moduletest.Change{"README.md", "", ""},
	)))
	want := `module "example" breaks the contract of provider modules:
  README.md: is missing; write one
  main.tf:2: provisioner "file" runs programs outside of the provider; remove it; what runs on the instance is user data
  terraform.tf:2: backend "local" is not allowed: the operator stores the state; remove it
  variables.tf:22: variable "user_data" has a sensitive argument that is not true or false; write sensitive = true
  variables.tf:22: variable "user_data" is not sensitive; add sensitive = true`
	if err == nil {
		t.Fatal("want an error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadSurvivesWhatCannotBeParsed(t *testing.T) {
	long.Test(t)
	tests := map[string]string{
		"a broken block":             "resource \"a\" {",
		"an unclosed string":         "locals { a = \"${ }",
		"a wall of exclamation":      "locals {\n a = " + strings.Repeat("!", (256<<10)-100) + "true\n}\n",
		"a wall of minus":            "locals {\n a = " + strings.Repeat("-", (256<<10)-100) + "1\n}\n",
		"a chain of conditionals":    "locals {\n a = " + strings.Repeat("a?b:", (256<<10)/4-100) + "1\n}\n",
		"nothing but null bytes":     strings.Repeat("\x00", 100),
		"a type that calls itself":   "variable \"machine\" {\n type = object({ a = optional(optional(string)) })\n}\n",
		"a type that is a function":  "variable \"machine\" {\n type = merge({}, {})\n}\n",
		"a default of another type":  "variable \"machine\" {\n type = object({ a = optional(list(string), {}) })\n}\n",
		"a requirement that is null": "terraform {\n required_providers {\n  x = null\n  y = { source = null, version = 1 }\n }\n}\n",
		"labels that are missing":    "resource {}\nvariable {}\noutput {}\nprovider {}\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, moduletest.Change{"more.tf", "", text})))
			if err == nil {
				t.Error("want an error")
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	valid := moduletest.Module()
	for _, name := range []string{"main.tf", "variables.tf", "terraform.tf", ".terraform.lock.hcl", "lookup/import.tf", "module.yaml"} {
		f.Add(name, valid[name])
	}
	f.Add("variables.tf", `variable "machine" { type = object({ a = optional(map(set(string)), { b = [null] }) }) }`)
	f.Add("variables.tf", `variable "user_data" { validation { condition = can(var.user_data[*].a) && core::one(var) }}`)
	f.Fuzz(func(t *testing.T, name, content string) {
		if _, replaces := valid[name]; !replaces {
			name = "more.tf"
		}
		_, err := load.Module(moduletest.FS(moduletest.Changed(t, moduletest.Change{name, "", content + "\n"})))
		var broken *contract.Error
		if errors.As(err, &broken) && len(broken.Breaches) == 0 {
			t.Error("a contract.Error names at least one breach")
		}
	})
}

func TestALookupMayImportWhatBelongsToTheInstance(t *testing.T) {
	const disks = "import {\n  for_each = { a = \"x\" }\n  to = example_disk.more[each.key]\n  id = each.value\n}\nimport {"
	if _, err := load.Module(moduletest.FS(moduletest.Changed(t, moduletest.Change{"lookup/import.tf", "import {", disks}))); err != nil {
		t.Error(err)
	}
}
