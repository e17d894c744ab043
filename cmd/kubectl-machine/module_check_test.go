package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/module/scaffold"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// newFolder writes modules into a folder of their own and returns it. Each edit is a file, a text in it, and its replacement.
func newFolder(t *testing.T, options scaffold.Options, edits ...[3]string) string {
	t.Helper()
	dir := t.TempDir()
	folder, err := scaffold.Write(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		replaceIn(t, filepath.Join(folder, edit[0]), edit[1], edit[2])
	}
	return dir
}

// replaceIn replaces old by new in a file. With old empty the file becomes new; with both empty it goes.
func replaceIn(t *testing.T, file, old, with string) {
	t.Helper()
	if old == "" && with == "" {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return
	}
	content := with
	if old != "" {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(before), old) {
			t.Fatalf("%s does not hold %q", file, old)
		}
		content = strings.Replace(string(before), old, with, 1)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// realEngine returns the flags for the engine and the providers that `make tools` built.
func realEngine(t *testing.T) []string {
	t.Helper()
	engine, mirror := os.Getenv("TOFU"), repository(t, "bin", "schemas")
	if engine == "" {
		engine = repository(t, "bin", "tofu")
	}
	for _, path := range []string{engine, mirror} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%v; run 'make tools'", err)
		}
	}
	return []string{"--engine-path", engine, "--provider-mirror", mirror}
}

var acme = scaffold.Options{Name: "acme"}

func TestCheckNamesPlaceAndFixOfEachBreach(t *testing.T) {
	cases := map[string]struct {
		edits [][3]string
		want  []string
	}{
		"a breach on a line": {
			edits: [][3]string{{"main.tf", "resource \"terraform_data\" \"this\" {", "resource \"terraform_data\" \"this\" {\n  count = 1"}},
			want:  []string{`acme/main.tf:17: resource "terraform_data" "this" is the instance, but has count; remove it: one Machine is one instance`},
		},
		"breaches in two files, all of them at once": {
			edits: [][3]string{{"README.md", "", ""}, {"module.yaml", "name: acme", "title: acme"}},
			want:  []string{"acme/README.md: is missing; write one", "acme/module.yaml:4: metadata.title is invalid"},
		},
		"an inventory that does not say whose an instance is": {
			edits: [][3]string{
				{"inventory/inventory.tf", "    installation =", "    # installation ="},
				{"variables.tf", "object({ installation = ", "object({ platform = "},
				{"main.tf", `var.cluster.installation == "" ? {} : {
    "machine-iac.io/installation" = var.cluster.installation
  }`, "{}"},
			},
			want: []string{
				`acme/variables.tf: variable "cluster" has no attribute installation, so that no instance can bear it; add installation = optional(string, "")`,
				`acme/inventory/inventory.tf: output "inventory" lists no installation, so that nothing of it is ever destroyed by the operator's policy; add installation`,
			},
		},
		"a table of fields that is not that of provider_spec": {
			edits: [][3]string{{"README.md", "| `zone` |", "| `zoen`, `tags.name` |"}},
			want: []string{
				"acme/README.md:26: zoen is no field of provider_spec; correct or remove its row, or write that it is not supported",
				"acme/README.md:26: tags.name is no field of provider_spec; ",
				"acme/README.md:14: zone is a field of provider_spec, but has no row; add one to the table",
			},
		},
		"an example that admission refuses": {
			edits: [][3]string{{"examples/machineset.yaml", "image: image-1", "image: [image-1]"}},
			want:  []string{"acme/examples/machineset.yaml:31: spec.template.spec.providerSpec.value.image: "},
		},
		"an example of another kind": {
			edits: [][3]string{{"examples/machineset.yaml", "", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"}},
			want:  []string{"acme/examples/machineset.yaml: has no MachineSet; add one"},
		},
		"another name than the folder's": {
			edits: [][3]string{{"module.yaml", "name: acme", "name: acne"}},
			want:  []string{`acme/module.yaml: metadata.name is "acne" in the folder acme; use the folder's name`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(newFolder(t, acme, tc.edits...))
			got := runCommand(t, "module", "check", "acme", "--no-engine")
			if got.code != 1 || got.err != "" {
				t.Errorf("it ends with %d and the errors %q; want 1 and none", got.code, got.err)
			}
			for _, want := range tc.want {
				if !strings.Contains("\n"+got.out, "\n"+want) {
					t.Errorf("no line begins with %q in\n%s", want, got.out)
				}
			}
			if strings.Contains(got.out, "acme@sha256") {
				t.Errorf("a module that breaks the contract passes for a good one:\n%s", got.out)
			}
		})
	}
}

func TestCheckSaysWhatAGoodModuleIs(t *testing.T) {
	dir := newFolder(t, scaffold.Options{Name: "acme", Provider: "acme/cloud", ProviderVersion: "1.2.3"})
	t.Chdir(dir)
	for _, argument := range []string{"acme", ".", dir, filepath.Join(dir, "acme") + "/"} {
		got := runCommand(t, "module", "check", argument, "--no-engine")
		const wantEnd = " serves acme.machine-iac.io/v1alpha1 AcmeMachineProviderSpec; providers: acme/cloud 1.2.3; passed: contract\n"
		const wantWarning = ".terraform.lock.hcl has no checksums of registry.opentofu.org/acme/cloud, registry.terraform.io/acme/cloud: any binary is accepted"
		if got.code != 0 || strings.Count(got.err, "\n") != 1 || !strings.HasPrefix(got.err, "warning: ") || !strings.Contains(got.err, wantWarning) {
			t.Errorf("check %s ends with %d and %q; want a warning that has %q", argument, got.code, got.err, wantWarning)
		}
		if !strings.HasPrefix(got.out, "acme@sha256:") || !strings.HasSuffix(got.out, wantEnd) || strings.Count(got.out, "\n") != 1 {
			t.Errorf("check %s prints %q; want one line that ends in %q", argument, got.out, wantEnd)
		}
	}
}

func TestCheckSaysThatItFindsNoTableOfFields(t *testing.T) {
	got := runCommand(t, "module", "check", newFolder(t, acme, [3]string{"README.md", "## providerSpec", "## Fields"}), "--no-engine")
	if want := "; left out: table of fields in README.md\n"; got.code != 0 || !strings.HasSuffix(got.out, want) {
		t.Errorf("it ends with %d, %q and %q; want %q", got.code, got.err, got.out, want)
	}
}

func TestCheckDoesNotWarnOfALockedModule(t *testing.T) {
	if got := runCommand(t, "module", "check", "../../modules/kubemark", "--no-engine"); got.code != 0 || got.err != "" {
		t.Errorf("it ends with %d and %q", got.code, got.err)
	}
	got := runCommand(t, "module", "check", "../../modules/aws", "--no-engine", "-o", "json")
	if want := `"withoutChecksums": [
        "registry.terraform.io/hashicorp/aws"
      ]`; got.err != "" || !strings.Contains(got.out, want) {
		t.Errorf("it prints %q and %s; want %s", got.err, got.out, want)
	}
}

func TestCheckSaysThatAModuleWithoutAKindOfItsOwnHasTheGeneralOne(t *testing.T) {
	dir := newFolder(t, acme,
		[3]string{"module.yaml", "  providerSpecs:\n    - apiVersions:\n        - acme.machine-iac.io/v1alpha1\n      kind: AcmeMachineProviderSpec\n", ""},
		[3]string{"examples/machineset.yaml", "apiVersion: acme.machine-iac.io/v1alpha1\n          kind: AcmeMachineProviderSpec\n          instanceType: small\n          image: image-1\n          credentialsSecret:\n            name: acme-credentials\n",
			"apiVersion: machine-iac.io/v1alpha1\n          kind: TerraformMachineProviderSpec\n          module: acme\n          credentialsSecret: {name: acme-credentials}\n          values: {instanceType: small, image: image-1}\n"})
	got := runCommand(t, "module", "check", dir, "--no-engine")
	if got.code != 0 || !strings.Contains(got.out, " serves machine-iac.io/v1alpha1 TerraformMachineProviderSpec; ") {
		t.Errorf("it ends with %d, %q and %q", got.code, got.err, got.out)
	}
}

func TestCheckSaysWhyAModuleHasNoBatches(t *testing.T) {
	const edited = "resource \"terraform_data\" \"this\" {"
	for with, want := range map[string]string{"": "", "locals { a = path.root }\n": "note: each of its Machines has engine processes of its own, which cost several times as much as batches: main.tf:16: a reference to path"} {
		t.Run(with, func(t *testing.T) {
			t.Chdir(newFolder(t, acme, [3]string{"main.tf", edited, with + edited}))
			got := runCommand(t, "module", "check", "acme", "--no-engine")
			if got.code != 0 || want == "" && strings.Contains(got.out, "note:") || !strings.Contains(got.out, want) {
				t.Errorf("it ends with %d and\n%s%s\nwant %q", got.code, got.out, got.err, want)
			}
		})
	}
}

func TestCheckListsTheFieldsThatAModuleFillsIn(t *testing.T) {
	got := runCommand(t, "module", "check", "../../modules/aws", "--no-engine")
	const want = "; fills in: instanceType, placement.region, userDataSecret, credentialsSecret; passed: contract\n"
	if got.code != 0 || !strings.HasSuffix(got.out, want) {
		t.Errorf("check ends with %d, %q and %q; want a line that ends in %q", got.code, got.err, got.out, want)
	}
}

func TestCheckOfManyModules(t *testing.T) {
	t.Run("finds two that serve one kind", func(t *testing.T) {
		dir := newFolder(t, acme)
		if _, err := scaffold.Write(dir, scaffold.Options{Name: "other", Kind: "AcmeMachineProviderSpec", APIVersion: "acme.machine-iac.io/v1alpha1"}); err != nil {
			t.Fatal(err)
		}
		got := runCommand(t, "module", "check", dir, "--no-engine")
		if got.code != 1 || !strings.Contains(got.out, `"acme" and "other" both serve acme.machine-iac.io/v1alpha1 AcmeMachineProviderSpec`) {
			t.Errorf("it ends with %d and\n%s", got.code, got.out)
		}
	})
	t.Run("takes a module once that is named twice", func(t *testing.T) {
		dir := newFolder(t, acme)
		got := runCommand(t, "module", "check", dir, filepath.Join(dir, "acme"), "--no-engine")
		if got.code != 0 || strings.Count(got.out, "\n") != 1 {
			t.Errorf("it ends with %d and\n%s", got.code, got.out)
		}
	})
	t.Run("refuses a folder that holds none", func(t *testing.T) {
		got := runCommand(t, "module", "check", t.TempDir(), "--no-engine")
		if got.code != 1 || !strings.Contains(got.err, "there is no module.yaml and no folder; name the folder of a module") {
			t.Errorf("it ends with %d and %q", got.code, got.err)
		}
	})
}

func TestCheckPrintsJSON(t *testing.T) {
	dir := newFolder(t, acme)
	broken, err := scaffold.Write(dir, scaffold.Options{Name: "broken"})
	if err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(broken, "README.md"), "", "")
	got := runCommand(t, "module", "check", dir, "--no-engine", "-o", "json")
	type breach struct{ File, Problem, Fix string }
	var checked struct {
		OK      bool
		Modules []struct {
			OK             bool
			Dir, Reference string
			Breaches       []breach
		}
	}
	if err := json.Unmarshal([]byte(got.out), &checked); err != nil {
		t.Fatalf("%v in\n%s", err, got.out)
	}
	if got.code != 1 || checked.OK || len(checked.Modules) != 2 {
		t.Fatalf("it ends with %d and\n%s", got.code, got.out)
	}
	good := checked.Modules[0]
	if !good.OK || !strings.HasPrefix(good.Reference, "acme@sha256:") || good.Dir != filepath.Join(dir, "acme") {
		t.Errorf("the good module is %+v", good)
	}
	want := []breach{{File: filepath.Join(broken, "README.md"), Problem: "is missing", Fix: "write one"}}
	if diff := cmp.Diff(want, checked.Modules[1].Breaches); diff != "" || checked.Modules[1].OK {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
}

func TestCheckWithoutAnEngineSaysWhatItLeavesOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	got := runCommand(t, "module", "check", newFolder(t, acme))
	if got.code != 0 || !strings.HasPrefix(got.err, "warning: fmt, validate and test are left out: finding tofu or terraform") {
		t.Errorf("it ends with %d and %q", got.code, got.err)
	}
}

func TestANewModulePassesItsOwnTests(t *testing.T) {
	long.Test(t)
	cases := map[string][]string{
		"a module of nothing but the engine": nil,
		"a module of a provider":             {"--provider", "gavinbunney/kubectl", "--provider-version", "1.19.0"},
	}
	for name, flags := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			made := runCommand(t, append([]string{"module", "new", "acme", "--dir", dir}, flags...)...)
			if made.code != 0 || !strings.Contains(made.out, "kubectl machine module check "+filepath.Join(dir, "acme")) {
				t.Fatalf("new ends with %d, %q and\n%s", made.code, made.err, made.out)
			}
			if saysChecksums := strings.Contains(made.out, "tofu providers lock"); saysChecksums != (flags != nil) {
				t.Errorf("new says what to do for the provider's checksums: %t\n%s", saysChecksums, made.out)
			}
			got := runCommand(t, append([]string{"module", "check", dir}, realEngine(t)...)...)
			if got.code != 0 || !strings.HasSuffix(got.out, "; passed: contract, fmt, init, validate, destroy, test, example\n") {
				t.Errorf("check ends with %d, %q and\n%s", got.code, got.err, got.out)
			}
		})
	}
}

func TestTheCheckConfiguresProvidersThatWantCredentials(t *testing.T) {
	long.Test(t)
	dir := newFolder(t, scaffold.Options{Name: "acme", Provider: "hashicorp/vsphere", ProviderVersion: "1.26.0"},
		[3]string{"main.tf", "locals {", "provider \"vsphere\" {\n  user           = \"somebody\"\n  vsphere_server = \"vcenter.example.com\"\n}\n\nlocals {"},
		[3]string{"module.yaml", "env: API_TOKEN", "env: VSPHERE_PASSWORD"},
	)
	got := runCommand(t, append([]string{"module", "check", dir}, realEngine(t)...)...)
	if got.code != 0 || !strings.HasSuffix(got.out, "; passed: contract, fmt, init, validate, destroy, test, example\n") {
		t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
}

func TestTheEngineFindsWhatTheContractCannot(t *testing.T) {
	long.Test(t)
	cases := map[string]struct {
		edits [][3]string
		want  string
	}{
		"a file that is not formatted": {
			edits: [][3]string{{"outputs.tf", `  value       = "Running"`, `  value = "Running"`}},
			want:  "/acme/outputs.tf: is not formatted; run tofu fmt -recursive in the module's folder\n",
		},
		"an argument that the resource does not have": {
			edits: [][3]string{{"main.tf", "  input = {", "  inptu = {}\n  input = {"}},
			want:  "/acme/main.tf:18: fails: Unsupported argument; ",
		},
		"a disruptive attribute that the resource does not have": {
			edits: [][3]string{{"module.yaml", "spec:\n", "spec:\n  disruptive:\n    - {type: terraform_data, attributes: [input, inptu], effect: stops it}\n"}},
			want:  "/acme/module.yaml: spec.disruptive[0] names inptu, which is no attribute or block of terraform_data; correct it, or remove it\n",
		},
		"a lookup that refers to nothing": {
			edits: [][3]string{{"lookup/import.tf", "toset(local.found)", "toset(local.title)"}},
			want:  "/acme/lookup/import.tf:20: fails: ",
		},
		"a test that fails": {
			edits: [][3]string{{"main.tf", "    image         = var.provider_spec.image\n    rootVolumeGiB = var.provider_spec.rootVolumeGiB\n    region        = var.provider_spec.region\n    zone          = var.provider_spec.zone\n", ""}},
			want:  `run "another_image_takes_another_instance" fails: Test assertion failed; What can't be changed in place must plan a replacement`,
		},
		"an example that the module cannot plan": {
			edits: [][3]string{{"main.tf", "  input = {", "  lifecycle {\n    precondition {\n      condition     = length(var.machine.labels) == 0\n      error_message = \"No label is supported.\"\n    }\n  }\n\n  input = {"}},
			want:  "/acme/examples/machineset.yaml: cannot be planned: ",
		},
		"a provider that the mirror does not have": {
			edits: [][3]string{
				{"terraform.tf", `required_version = ">= 1.8.0"`, "required_version = \">= 1.8.0\"\n\n  required_providers {\n    cloud = {\n      source  = \"acme/cloud\"\n      version = \"1.2.3\"\n    }\n  }"},
				{".terraform.lock.hcl", "", "provider \"registry.opentofu.org/acme/cloud\" {\n  version     = \"1.2.3\"\n  constraints = \"1.2.3\"\n}\n"},
			},
			want: "fails: Failed to query available provider packages; ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := runCommand(t, append([]string{"module", "check", newFolder(t, acme, tc.edits...)}, realEngine(t)...)...)
			if got.code != 1 || !strings.Contains(got.out, tc.want) {
				t.Errorf("it ends with %d and %q; want %q in\n%s", got.code, got.err, tc.want, got.out)
			}
		})
	}
}

func TestLookupsAreTestedBesideTheModule(t *testing.T) {
	long.Test(t)
	dir := filepath.Join(t.TempDir(), "openstack")
	if err := os.CopyFS(dir, os.DirFS(repository(t, "modules", "openstack"))); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(dir, "lookup", "import.tf"), "length(self.ids) <= 1", "length(self.ids) <= 2")
	got := runCommand(t, append([]string{"module", "check", dir}, realEngine(t)...)...)
	for _, want := range []string{
		`lookup/import.tf:`, `run "two_servers_stop_it" fails: Duplicate import configuration`,
		`tests/lookup/lookup.tftest.hcl:`, `run "two_servers_stop_it" fails: Missing expected failure`,
	} {
		if got.code != 1 || !strings.Contains(got.out, want) {
			t.Errorf("it ends with %d, %q; want %q in\n%s", got.code, got.err, want, got.out)
		}
	}
}

func TestAdoptionsAndInventoriesAreTestedBesideTheModule(t *testing.T) {
	long.Test(t)
	dir := filepath.Join(t.TempDir(), "kubemark")
	if err := os.CopyFS(dir, os.DirFS(repository(t, "modules", "kubemark"))); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(dir, "tests", "adopt", "adopt.tftest.hcl"), `expect_failures = [data.kubectl_objects.adopted]`, "")
	replaceIn(t, filepath.Join(dir, "inventory", "inventory.tf"), `"kubemark://")]`, `"aws://")]`)
	got := runCommand(t, append([]string{"module", "check", dir}, realEngine(t)...)...)
	for _, want := range []string{
		`adopt/import.tf:`, `run "no_node_is_not_adopted" fails: Resource postcondition failed`,
		`tests/inventory/inventory.tftest.hcl:`, `run "lists_simulated_nodes" fails: Test assertion failed; What is no simulated Node is left out.`,
	} {
		if got.code != 1 || !strings.Contains(got.out, want) {
			t.Errorf("it ends with %d, %q; want %q in\n%s", got.code, got.err, want, got.out)
		}
	}
	replaceIn(t, filepath.Join(dir, "inventory", "inventory.tf"), "local.inventory :", "local.inventry :")
	if got := runCommand(t, append([]string{"module", "check", dir}, realEngine(t)...)...); got.code != 1 || !strings.Contains(got.out, "inventory/inventory.tf:14: fails: ") {
		t.Errorf("an inventory that refers to nothing ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
}

func TestTheCheckLeavesTheFolderAsItWas(t *testing.T) {
	long.Test(t)
	dir := newFolder(t, acme)
	before := contents(t, dir)
	if got := runCommand(t, append([]string{"module", "check", dir}, realEngine(t)...)...); got.code != 0 {
		t.Fatalf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("the folder has changed (-before +after):\n%s", diff)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
