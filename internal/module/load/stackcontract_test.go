package load_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func parameter(text string) string {
	return "value: " + base64.StdEncoding.EncodeToString([]byte(text))
}

var validParameter = parameter(`{"remote":{"url":"registry.opentofu.org/acme/example","version":"1.2.3"},"includes":["example_instance"]}`)

func TestLoadRefusesAStackThatBreaksTheContract(t *testing.T) {
	const twice = "  twice = 2\n  provider_id"
	tests := map[string]struct {
		changes []moduletest.Change
		want    string // the whole text of the breaches
	}{
		// Files.
		"variables.tf is missing": {
			changes: []moduletest.Change{{"variables.tf", "", ""}, {"checks.tf", "", ""}, {"locals.tf", "", ""}, {"Pulumi.yaml", "  locals:\n    type: object\n", ""}, {"module.yaml", "  credentials:\n    keys:\n      - key: token\n        env: EXAMPLE_TOKEN\n      - key: region\n        env: EXAMPLE_REGION\n        optional: true\n        public: true\n", ""}, {"module.yaml", "  capacity:\n    path: size\n    instanceTypes:\n      - name: small\n        cpu: \"2\"\n        memory: 4Gi\n", ""}},
			want: `variables.tf: is missing; declare the variables machine, provider_spec and user_data: providerSpecs are checked against their types` + "\n" +
				`variables.tf: variable "machine" is missing; declare it` + "\n" +
				`variables.tf: variable "provider_spec" is missing; declare it` + "\n" +
				`variables.tf: variable "user_data" is missing; declare it`,
		},
		"resources in HCL, which nobody makes": {
			changes: []moduletest.Change{{"main.tf", "", "resource \"a_b\" \"this\" {}\n"}},
			want:    "main.tf: is HCL, which a stack does not run; use only variables.tf, locals.tf and checks.tf; the program is in Pulumi.yaml",
		},
		"a lookup in HCL": {
			changes: []moduletest.Change{{"lookup/import.tf", "", "import {}\n"}},
			want:    "lookup/import.tf: is HCL, which a stack does not run; use only variables.tf, locals.tf and checks.tf; the program is in Pulumi.yaml",
		},
		"a resource among variables": {
			changes: []moduletest.Change{{"variables.tf", `variable "user_data" {`, "resource \"a_b\" \"this\" {}\nvariable \"user_data\" {"}},
			want:    `variables.tf:22: resource "a_b" "this" does not belong in variables.tf of a stack; use only blocks of the type variable; resources are declared in Pulumi.yaml`,
		},
		"a lock file of the other engine": {
			changes: []moduletest.Change{{".terraform.lock.hcl", "", "# nothing\n"}},
			want:    ".terraform.lock.hcl: pins providers of another engine; remove it; sdks/ pins a stack's",
		},
		"settings of a stack": {
			changes: []moduletest.Change{{"Pulumi.machine.yaml", "", "config: {}\n"}},
			want:    "Pulumi.machine.yaml: contains stack settings, which only the operator may write; remove it; what users can set are fields of provider_spec",
		},
		"another program, which Pulumi's YAML would take first": {
			changes: []moduletest.Change{{"lookup/Main.yaml", "", "resources: {}\n"}},
			want:    "lookup/Main.yaml: would run instead of Pulumi.yaml; write the program into lookup/Pulumi.yaml",
		},
		"a README is missing": {
			changes: []moduletest.Change{{"README.md", "", ""}},
			want:    "README.md: is missing; write one",
		},
		"a check that no engine would evaluate": {
			changes: []moduletest.Change{{"checks.tf", "length(var.provider_spec.disks) > 0", `self.id != ""`}},
			want:    `checks.tf:2: check "disks" assert must refer to variables, and to nothing else; refer to var.machine and var.provider_spec`,
		},
		"a variable of the engine is set": {
			changes: []moduletest.Change{{"module.yaml", "EXAMPLE_QUIET", "PULUMI_HOME"}},
			want:    "module.yaml:16: spec.environment[0].name is PULUMI_HOME, which controls the engine and is reserved for the operator; use a variable that the provider reads",
		},
		// Locals.
		"a local of what is recorded, which nothing is": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", "  searches = var.recorded == null ? [1] : []\n  provider_id"}},
			want:    "locals.tf:2: local.searches refers to var.recorded, which cannot be evaluated before a run; refer only to var.machine, var.provider_spec, var.cluster, var.recorded and local.NAME",
		},
		"a local of what a run only knows": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", "  now = timestamp()\n  provider_id"}},
			want: "locals.tf:2: local.now calls timestamp, which cannot be evaluated before a run; use functions whose result depends only on their arguments; " +
				"docs/contracts/module.md lists them",
		},
		"a local of user data would show it": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", "  script = base64encode(var.user_data)\n  provider_id"}},
			want: "locals.tf:2: local.script refers to var.user_data, but the program gets the result in plain text; " +
				"use ${user_data} in Pulumi.yaml, where it is a secret",
		},
		"all variables at once, user data among them": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", "  all = jsonencode(var)\n  provider_id"}},
			want:    "locals.tf:2: local.all refers to var, which cannot be evaluated before a run; refer only to var.machine, var.provider_spec, var.cluster, var.recorded and local.NAME",
		},
		"user data under another spelling": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", "  script = var[\"user_data\"]\n  provider_id"}},
			want:    "locals.tf:2: local.script refers to var, which cannot be evaluated before a run; refer only to var.machine, var.provider_spec, var.cluster, var.recorded and local.NAME",
		},
		"a local that is to be secret": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", "  hidden = sensitive(var.provider_spec.size)\n  provider_id"}},
			want: "locals.tf:2: local.hidden calls sensitive, but the program gets the result in plain text; " +
				"keep secrets in user_data, or mark them in Pulumi.yaml",
		},
		"a local of a resource": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", "  id = this.id\n  provider_id"}},
			want:    "locals.tf:2: local.id refers to this.id, which cannot be evaluated before a run; refer only to var.machine, var.provider_spec, var.cluster, var.recorded and local.NAME",
		},
		"a local that is not there": {
			changes: []moduletest.Change{{"locals.tf", "id = local.provider_id", "id = local.provider_ids"}},
			want:    "locals.tf:3: local.labels refers to local.provider_ids, which does not exist; correct the spelling, or declare it",
		},
		"a field that is not there": {
			changes: []moduletest.Change{{"locals.tf", "var.machine.uid", "var.machine.id"}},
			want:    "locals.tf:2: local.provider_id cannot be evaluated: Unsupported attribute; This object does not have an attribute named \"id\".",
		},
		"locals in a circle": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", "  a = local.b\n  b = [local.a]\n  provider_id"}},
			want:    "locals.tf:2: local.a refers to itself: a -> b -> a; compute one of them without the others",
		},
		"a local that is declared twice": {
			changes: []moduletest.Change{{"locals.tf", "  provider_id", twice}, {"locals.tf", "  disks", "  twice = 3\n  disks"}},
			want:    "locals.tf:8: local.twice is declared twice; keep one",
		},
		"locals that the program does not take": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  locals:\n    type: object\n", ""}},
			want:    "Pulumi.yaml: config.locals is missing, so nothing uses locals.tf; add locals: {type: object}, or remove locals.tf",
		},
		"a program that takes locals that are not there": {
			changes: []moduletest.Change{{"locals.tf", "", ""}},
			want:    "Pulumi.yaml:9: config.locals exists, but locals.tf declares none; remove it, or write locals.tf",
		},
		// The project.
		"no program": {
			changes: []moduletest.Change{{"Pulumi.yaml", "", ""}},
			want:    "Pulumi.yaml: is missing; write the program, or name its runtime",
		},
		"a field given twice": {
			changes: []moduletest.Change{{"Pulumi.yaml", "runtime: yaml", "runtime: yaml\nruntime: go"}},
			want:    `Pulumi.yaml:4: is not valid YAML: yaml: unmarshal errors: line 4: key "runtime" already set in map`,
		},
		"no object": {
			changes: []moduletest.Change{{"Pulumi.yaml", "", "[]\n"}},
			want:    "Pulumi.yaml: is not a YAML object; write the project's name, runtime, config, resources and outputs",
		},
		"another name than the stack's": {
			changes: []moduletest.Change{{"Pulumi.yaml", "name: example\n", "name: examples\n"}},
			want:    `Pulumi.yaml:1: name is "examples"; write example, the stack's name in module.yaml: resources are named after it`,
		},
		"no runtime": {
			changes: []moduletest.Change{{"Pulumi.yaml", "runtime: yaml\n", ""}},
			want:    "Pulumi.yaml: runtime names no runtime; write runtime: yaml, or the language of the program",
		},
		"a compiler, which would write the program": {
			changes: []moduletest.Change{{"Pulumi.yaml", "runtime: yaml\n", "runtime: {name: yaml, options: {compiler: sh}}\n"}},
			want:    "Pulumi.yaml:3: runtime has options, which could start a program that writes the program; write runtime: yaml",
		},
		"plugins by paths": {
			changes: []moduletest.Change{{"Pulumi.yaml", "runtime: yaml\n", "runtime: yaml\nplugins: {providers: [{name: example, path: /tmp}]}\n"}},
			want:    "Pulumi.yaml:4: plugins names plugins by paths; remove it: plugins come from the manager's folder of plugins",
		},
		"a component from elsewhere": {
			changes: []moduletest.Change{{"Pulumi.yaml", "runtime: yaml\n", "runtime: yaml\npackages: {vm: github.com/acme/vm}\n"}},
			want:    "Pulumi.yaml:4: packages names packages that nothing pins; remove it, and pin them in sdks/ with 'pulumi package add'",
		},
		"components, whose resources no rule looks at": {
			changes: []moduletest.Change{{"Pulumi.yaml", "runtime: yaml\n", "runtime: yaml\ncomponents: {}\n"}},
			want:    "Pulumi.yaml:4: components declares components; move their resources to the top level",
		},
		"a checkpoint elsewhere": {
			changes: []moduletest.Change{{"Pulumi.yaml", "runtime: yaml\n", "runtime: yaml\nbackend: {url: 's3://x'}\n"}},
			want:    "Pulumi.yaml:4: backend sets where the checkpoint is stored; remove it: the operator stores the checkpoint",
		},
		"a field in another spelling, which Pulumi takes": {
			changes: []moduletest.Change{{"Pulumi.yaml", "variables:\n", "Variables:\n"}},
			want: "Pulumi.yaml:14: Variables is not a field that a stack's project may have; remove it, or correct the spelling; " +
				"allowed are name, description, runtime, author, website, license, requiredPulumiVersion, config, variables, resources, outputs",
		},
		"an alias": {
			changes: []moduletest.Change{{"Pulumi.yaml", "      byteLength: 4\n", "      keepers: &k {a: b}\n      others: *k\n      byteLength: 4\n"}},
			want:    "Pulumi.yaml:36: contains an alias, which YAML parsers interpret differently; write it out",
		},
		// Configuration.
		"a variable that the program does not take": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  machine:\n    type: object\n", ""}},
			want:    "Pulumi.yaml: config.machine is missing; add machine: {type: object}",
		},
		"user data that the program does not take": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  user_data:\n    type: string\n    secret: true\n", ""}},
			want:    "Pulumi.yaml: config.user_data is missing; add user_data: {type: string, secret: true}",
		},
		"a value that nobody gives": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  machine:\n", "  region: {type: string}\n  machine:\n"}},
			want:    "Pulumi.yaml:5: config.region is not passed to a program; remove it; available are machine, provider_spec, user_data, cluster if variables.tf declares it, and locals if there is locals.tf",
		},
		"a value of another type": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  machine:\n    type: object\n", "  machine:\n    type: string\n"}},
			want:    `Pulumi.yaml:5: config.machine has the type "string"; write type: object`,
		},
		"user data in plain text": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    secret: true\n", ""}},
			want:    "Pulumi.yaml:11: config.user_data is not secret; add secret: true, so that it is always stored encrypted",
		},
		"a default, which the schema has": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  provider_spec:\n    type: object\n", "  provider_spec:\n    type: object\n    default: {}\n"}},
			want:    "Pulumi.yaml:9: config.provider_spec.default sets a value that only the operator sets; remove it; defaults belong in the type in variables.tf",
		},
		// Functions.
		"an asset from elsewhere": {
			changes: []moduletest.Change{{"Pulumi.yaml", "byteLength: 4", "byteLength: {'fn::remoteAsset': 'https://acme.example'}"}},
			want:    "Pulumi.yaml:35: fn::remoteAsset reads something outside of the stack; put it into the stack's folder, or use a provider's function",
		},
		"another stack": {
			changes: []moduletest.Change{{"Pulumi.yaml", "byteLength: 4", "byteLength: {'fn::StackReference': {name: a}}"}},
			want:    "Pulumi.yaml:35: fn::StackReference reads something outside of the stack; put it into the stack's folder, or use a provider's function",
		},
		"a file that the author of a Machine names": {
			changes: []moduletest.Change{{"Pulumi.yaml", "byteLength: 4", "byteLength: {'fn::readFile': '${provider_spec.size}'}"}},
			want:    `Pulumi.yaml:35: fn::readFile reads "${provider_spec.size}", which may be any file of the manager; use a literal path of a file in the stack's folder`,
		},
		"a file outside of the stack": {
			changes: []moduletest.Change{{"Pulumi.yaml", "byteLength: 4", "byteLength: {'fn::fileAsset': templates/../../x}"}},
			want:    `Pulumi.yaml:35: fn::fileAsset reads "templates/../../x", which may be any file of the manager; use a literal path of a file in the stack's folder`,
		},
		"a file that is computed": {
			changes: []moduletest.Change{{"Pulumi.yaml", "byteLength: 4", "byteLength: {'fn::readFile': {'fn::join': ['', [a]]}}"}},
			want:    `Pulumi.yaml:35: fn::readFile reads an object, which may be any file of the manager; use a literal path of a file in the stack's folder`,
		},
		"a secret that is shown": {
			changes: []moduletest.Change{{"Pulumi.yaml", "fn::secret: ${user_data}", "fn::unsecret: ${user_data}"}},
			want:    "Pulumi.yaml:28: fn::unsecret would reveal a secret in the checkpoint; remove it",
		},
		// Resources.
		"no instance": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  this:\n", "  that:\n"}},
			want:    `Pulumi.yaml:20: has no resource called "this"; give that name to the resource that is the instance`,
		},
		"an instance that is repeated": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    type: example:Instance\n", "    type: example:Instance\n    each: {d: '${locals.disks}'}\n"}},
			want:    "Pulumi.yaml:23: resources.this.each repeats the instance, but a Machine has only one; remove it",
		},
		"a resource for each entry of what the operator does not compute": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    type: random:RandomId\n", "    type: random:RandomId\n    each: {d: '${provider_spec.disks}'}\n"}},
			want:    "Pulumi.yaml:34: resources.note has an each that does not refer to locals; write each: {NAME: ${locals.LIST}}",
		},
		"a repeated resource with the name of another": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  note:\n    type: random:RandomId\n", "  note0: {type: 'random:RandomId'}\n  note:\n    type: random:RandomId\n    each: {d: '${locals.disks}'}\n"}},
			want:    "Pulumi.yaml:33: resources.note is repeated, and one of its copies is called note0, a name that is already used; choose another name",
		},
		"a list of nothing": {
			changes: []moduletest.Change{{"Pulumi.yaml", "byteLength: 4", "byteLength: {'fn::each': {d: '${locals.disks}'}}"}},
			want:    "Pulumi.yaml:35: resources.note has fn::each without make; add what is to be repeated",
		},
		"an instance that is only read": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    options:\n      additional", "    get: {id: x}\n    options:\n      additional"}},
			want:    "Pulumi.yaml:21: resources.this is only read; remove get: this resource is what creating a Machine creates",
		},
		"an instance that cannot be deleted": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    options:\n      additional", "    options:\n      protect: false\n      additional"}},
			want:    "Pulumi.yaml:30: resources.this.options.protect prevents the deletion of its Machine; remove it",
		},
		"an instance that stays behind": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    options:\n      additional", "    options:\n      retainOnDelete: true\n      additional"}},
			want:    "Pulumi.yaml:30: resources.this.options.retainOnDelete leaves the instance behind when its Machine is deleted; remove it",
		},
		"an option in another spelling, which Pulumi takes": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    options:\n      additional", "    options:\n      Protect: true\n      additional"}},
			want: "Pulumi.yaml:30: resources.this.options.Protect is unknown; remove it, or correct the spelling; allowed are additionalSecretOutputs, aliases, customTimeouts, " +
				"deleteBeforeReplace, deletedWith, dependsOn, envVarMappings, hideDiffs, ignoreChanges, parent, provider, providers, replaceOnChanges, replaceWith, replacementTrigger",
		},
		"an import at every run": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    options:\n      additional", "    options:\n      import: x\n      additional"}},
			want:    "Pulumi.yaml:30: resources.this.options.import would import in every run; remove it; lookup/ finds what an interrupted run has created",
		},
		"another name than its key": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    type: example:Instance\n", "    type: example:Instance\n    name: other\n"}},
			want:    "Pulumi.yaml:23: resources.this.name gives it another name than its key; remove it: it is identified by its key",
		},
		"a resource without a type": {
			changes: []moduletest.Change{{"Pulumi.yaml", "    type: random:RandomId\n", ""}, {"sdks/random.yaml", "", ""}},
			want:    "Pulumi.yaml:32: resources.note has no type; write type: package:module:Type",
		},
		"a resource that runs programs": {
			changes: []moduletest.Change{
				{"Pulumi.yaml", "random:RandomId", "command:local:Command"}, {"sdks/random.yaml", "name: random", "name: command"},
			},
			want: "Pulumi.yaml:32: resources.note runs programs; use a provider's resource; what runs on the instance is user data",
		},
		"another stack as a resource": {
			changes: []moduletest.Change{{"Pulumi.yaml", "random:RandomId", "pulumi:pulumi:StackReference"}, {"sdks/random.yaml", "", ""}},
			want:    "Pulumi.yaml:32: resources.note is a pulumi:pulumi:StackReference, which reads another stack or creates nothing; remove it",
		},
		"an output is missing": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  zone: ${this.id}\n", ""}},
			want:    "Pulumi.yaml:36: outputs.zone is missing; declare it",
		},
		"an output is secret": {
			changes: []moduletest.Change{{"Pulumi.yaml", "  zone: ${this.id}\n", "  zone: {'fn::secret': x}\n"}},
			want:    "Pulumi.yaml:43: outputs.zone is a secret, but it is published on the Machine; remove fn::secret",
		},
		// Packages.
		"a package that is not pinned": {
			changes: []moduletest.Change{{"sdks/random.yaml", "", ""}},
			want:    `Pulumi.yaml:32: resources.note uses the package "random", which is not pinned; declare it in sdks/ with 'pulumi package add'`,
		},
		"a function of a package that is not pinned": {
			changes: []moduletest.Change{{"Pulumi.yaml", "byteLength: 4", "byteLength: {'fn::acme:getSize': {}}"}},
			want:    `Pulumi.yaml:35: acme:getSize uses the package "acme", which is not pinned; declare it in sdks/ with 'pulumi package add'`,
		},
		"a function, called at length, of a package that is not pinned": {
			changes: []moduletest.Change{{"Pulumi.yaml", "function: example:getImage", "function: acme:getImage"}},
			want:    `Pulumi.yaml:17: acme:getImage uses the package "acme", which is not pinned; declare it in sdks/ with 'pulumi package add'`,
		},
		"a package that is not used": {
			changes: []moduletest.Change{{"sdks/tls.yaml", "", "packageDeclarationVersion: 1\nname: tls\nversion: 5.0.0\n"}},
			want:    `sdks: package "tls" is pinned but not used; remove its declaration`,
		},
		"a package that is pinned twice": {
			changes: []moduletest.Change{{"sdks/random2.yaml", "", "packageDeclarationVersion: 1\nname: random\nversion: 5.0.0\n"}},
			want:    `sdks/random2.yaml: declares the package "random" twice; keep one`,
		},
		"a package that is declared elsewhere, where Pulumi's YAML finds it": {
			changes: []moduletest.Change{{"templates/tls.yaml", "", "packageDeclarationVersion: 1\nname: tls\nversion: 5.0.0\n"}},
			want:    `templates/tls.yaml: declares a package; move it into sdks/`,
		},
		"a package of no version": {
			changes: []moduletest.Change{{"sdks/random.yaml", "version: 4.16.0\n", ""}},
			want:    `sdks/random.yaml: version is ""; write an exact version, for example 1.19.0`,
		},
		"a package with a field that is new": {
			changes: []moduletest.Change{{"sdks/random.yaml", "version: 4.16.0\n", "version: 4.16.0\nextension: {}\n"}},
			want:    `sdks/random.yaml:4: extension is invalid: unknown field "extension"; remove it, or correct the spelling`,
		},
		"a bridge to a file of one machine": {
			changes: []moduletest.Change{{"sdks/example/example-1.2.3.yaml", validParameter, parameter(`{"local":{"path":"/opt/example"}}`)}},
			want: "sdks/example/example-1.2.3.yaml:7: parameterization.value does not name a provider by its address; a local path would get into the checkpoint; " +
				`write the base64 of {"remote": {"url": "host/namespace/type", "version": "1.19.0"}}, as 'pulumi package add' does`,
		},
		"a bridge to a file beside an address": {
			changes: []moduletest.Change{{"sdks/example/example-1.2.3.yaml", validParameter, parameter(`{"local":{"path":"/opt/example"},"remote":{"url":"registry.opentofu.org/acme/example","version":"1.2.3"}}`)}},
			want: "sdks/example/example-1.2.3.yaml:7: parameterization.value does not name a provider by its address; a local path would get into the checkpoint; " +
				`write the base64 of {"remote": {"url": "host/namespace/type", "version": "1.19.0"}}, as 'pulumi package add' does`,
		},
		"a bridge to another version than it says": {
			changes: []moduletest.Change{{"sdks/example/example-1.2.3.yaml", validParameter, parameter(`{"remote":{"url":"registry.opentofu.org/acme/example","version":"1.2.4"}}`)}},
			want: `sdks/example/example-1.2.3.yaml:7: parameterization.value pins the version "1.2.4", but parameterization.version is "1.2.3"; ` +
				"write the same exact version in both",
		},
		"a bridge to a provider of no registry": {
			changes: []moduletest.Change{{"sdks/example/example-1.2.3.yaml", validParameter, parameter(`{"remote":{"url":"acme/example","version":"1.2.3"}}`)}},
			want: `sdks/example/example-1.2.3.yaml:7: parameterization.value names the provider "acme/example"; ` +
				`write the base64 of {"remote": {"url": "host/namespace/type", "version": "1.19.0"}}, as 'pulumi package add' does`,
		},
		"a bridge to what nobody can read": {
			changes: []moduletest.Change{{"sdks/example/example-1.2.3.yaml", validParameter, "value: '!'"}},
			want: `sdks/example/example-1.2.3.yaml:7: parameterization.value is not the base64 of a JSON object; ` +
				`write the base64 of {"remote": {"url": "host/namespace/type", "version": "1.19.0"}}, as 'pulumi package add' does`,
		},
		// The lookup.
		"a lookup that module.yaml does not know of": {
			changes: []moduletest.Change{{"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""}},
			want:    "lookup/Pulumi.yaml: exists, but module.yaml has no spec.lookup; add spec.lookup: {}",
		},
		"a lookup that is not there": {
			changes: []moduletest.Change{{"lookup/Pulumi.yaml", "", ""}},
			want:    "module.yaml:18: spec.lookup is set, but there is no lookup/Pulumi.yaml; create it, or remove spec.lookup",
		},
		"a lookup of another name": {
			changes: []moduletest.Change{{"lookup/Pulumi.yaml", "name: example\n", "name: lookup\n"}},
			want:    `lookup/Pulumi.yaml:1: name is "lookup"; write example, the stack's name in module.yaml: resources are named after it`,
		},
		"a lookup that makes something": {
			changes: []moduletest.Change{{"lookup/Pulumi.yaml", "    get:\n      id: instances/${machine.name}\n", ""}},
			want:    "lookup/Pulumi.yaml:9: resources.this would be created; add get: a lookup only reads",
		},
		"a lookup of something else": {
			changes: []moduletest.Change{{"lookup/Pulumi.yaml", "example:index:Instance", "example:index:Disk"}},
			want: "lookup/Pulumi.yaml:6: does not read example:index/instance:Instance.this; " +
				"read the instance with the same name and type as in the program",
		},
		"a lookup of what the providerSpec says now": {
			changes: []moduletest.Change{{"lookup/Pulumi.yaml", "instances/${machine.name}", "${provider_spec.size}/${machine.name}"}, {"lookup/Pulumi.yaml", "  machine:\n", "  provider_spec: {type: object}\n  machine:\n"}},
			want: "lookup/Pulumi.yaml:13: resources.this.get refers to provider_spec, which may have changed since the interrupted create; " +
				"use machine, or the result of a function",
		},
		"a lookup without a provider of its own": {
			changes: []moduletest.Change{{"lookup/Pulumi.yaml", "    options:\n      provider: ${example}\n", ""}},
			want: "lookup/Pulumi.yaml:9: resources.this has no explicit provider, so Pulumi would look for a plugin with its package's name; " +
				"add a resource of the type pulumi:providers:example, and name it in options.provider",
		},
		"a lookup that boots something": {
			changes: []moduletest.Change{{"lookup/Pulumi.yaml", "  machine:\n", "  user_data: {type: string, secret: true}\n  machine:\n"}},
			want:    "lookup/Pulumi.yaml:4: config.user_data is not passed to a search; remove it: it has nothing to boot",
		},
		"a lookup that cannot be read": {
			changes: []moduletest.Change{{"lookup/Pulumi.yaml", "", "{"}},
			want:    "lookup/Pulumi.yaml:1: is not valid YAML: yaml: line 1: did not find expected node content",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.ChangedStack(t, tc.changes...)))
			var broken *contract.Error
			if !errors.As(err, &broken) {
				t.Fatalf("error %v, want a contract.Error", err)
			}
			lines := make([]string, 0, len(broken.Breaches))
			for _, breach := range broken.Breaches {
				lines = append(lines, breach.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPulumiProgramBesideATerraformModuleIsReported(t *testing.T) {
	_, err := load.Module(moduletest.FS(moduletest.Changed(t, moduletest.Change{"Pulumi.yaml", "", "name: example\n"})))
	var broken *contract.Error
	if !errors.As(err, &broken) || broken.Breaches[0].String() != "Pulumi.yaml: is a Pulumi program, but spec.engine of module.yaml is Terraform; write engine: Pulumi, or remove the file" {
		t.Errorf("error %v", err)
	}
}

func TestAProgramInAnotherLanguageIsTakenForWhatItIs(t *testing.T) {
	const project = `name: example
runtime:
  name: go
  options: {binary: example}
main: program
config:
  user_data: {type: string, secret: true}
`
	code := []moduletest.Change{{"Pulumi.yaml", "", project}, {"lookup/Pulumi.yaml", "", ""}, {"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""}}
	loaded := moduletest.LoadStack(t, code...)
	if loaded.InstanceAddress() != "" {
		t.Errorf("instance %q of a program that nobody reads", loaded.InstanceAddress())
	}
	for name, tc := range map[string]struct {
		change moduletest.Change
		want   string
	}{
		"it is not a folder of the stack": {
			change: moduletest.Change{"Pulumi.yaml", "main: program", "main: ../program"},
			want:   `Pulumi.yaml:5: main is "../program", which is outside of the stack; use a folder of the stack`,
		},
		"it has resources, which its language does not read": {
			change: moduletest.Change{"Pulumi.yaml", "main: program", "resources: {}"},
			want: "Pulumi.yaml:5: resources is not a field that a stack's project may have; remove it, or correct the spelling; " +
				"allowed are name, description, runtime, author, website, license, requiredPulumiVersion, config, main",
		},
		"its configuration shows user data": {
			change: moduletest.Change{"Pulumi.yaml", "secret: true", "secret: false"},
			want:   "Pulumi.yaml:7: config.user_data is not secret; add secret: true, so that it is always stored encrypted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.ChangedStack(t, append(code, tc.change)...)))
			var broken *contract.Error
			if !errors.As(err, &broken) || broken.Breaches[0].String() != tc.want || len(broken.Breaches) != 1 {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
