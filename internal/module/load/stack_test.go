package load_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestLoadReturnsWhatAStackSays(t *testing.T) {
	loaded := moduletest.LoadStack(t)
	if got := loaded.Engine(); got != v1alpha1.EnginePulumi {
		t.Errorf("engine %q, want Pulumi", got)
	}
	if got := moduletest.Load(t).Engine(); got != v1alpha1.EngineTerraform {
		t.Errorf("engine %q where module.yaml names no runtime, want Terraform", got)
	}
	if got, want := loaded.InstanceAddress(), "example:index/instance:Instance.this"; got != want {
		t.Errorf("instance %q, want %q, as the engine's reports have it", got, want)
	}
	if diff := cmp.Diff([]string{"lookup/Pulumi.yaml"}, loaded.LookupFiles()); diff != "" {
		t.Errorf("lookup files (-want +got):\n%s", diff)
	}
	provider := module.Provider{Host: module.OpenTofuHost, Namespace: "acme", Type: "example", Version: "1.2.3"}
	if diff := cmp.Diff([]module.Provider{provider}, loaded.Providers()); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	wantPackages := []module.Package{
		{Name: "example", Version: "1.2.3", Plugin: "terraform-provider", Provider: &provider},
		{Name: "random", Version: "4.16.0", Plugin: "random"},
	}
	if diff := cmp.Diff(wantPackages, loaded.Packages()); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	if len(loaded.Checks()) != 1 || !loaded.Absent("no such instance") || loaded.Spec().Credentials.Path != module.DefaultCredentialsPath {
		t.Error("want checks, words of absence and credentials as in any module")
	}
	for _, name := range []string{"Pulumi.yaml", "locals.tf", "sdks/random.yaml", "templates/user-data.txt"} {
		if _, err := fs.Stat(loaded.Files(), name); err != nil {
			t.Errorf("a run needs %s: %v", name, err)
		}
	}
	if without := moduletest.LoadStack(t, moduletest.Change{"lookup/Pulumi.yaml", "", ""}, moduletest.Change{"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""}); len(without.LookupFiles()) != 0 {
		t.Error("want no lookup files where there is no lookup")
	}
}

func TestWhatNoRunSeesOfAStackIsLetBe(t *testing.T) {
	loaded := moduletest.LoadStack(t, moduletest.Change{"examples/main.tf", "", "module \"x\" {}\n"}, moduletest.Change{"tests/stack.tftest.hcl", "", "run \"x\" {}\n"}, moduletest.Change{"tests/setup.tf", "", "\n"})
	if loaded.Digest() != moduletest.LoadStack(t).Digest() {
		t.Error("examples and tests change the digest")
	}
}

func TestTheProgramIsInTheDigest(t *testing.T) {
	digest := moduletest.LoadStack(t).Digest()
	for _, c := range []moduletest.Change{
		{"Pulumi.yaml", "byteLength: 4", "byteLength: 8"}, {"locals.tf", "1024", "1000"}, {"lookup/Pulumi.yaml", "instances/", "instance/"},
		{"sdks/random.yaml", "4.16.0", "4.17.0"},
	} {
		if moduletest.LoadStack(t, c).Digest() == digest {
			t.Errorf("a change of %s does not change the digest", c[0])
		}
	}
}

const stackVariables = `{
  "machine": {"name": "m", "namespace": "n", "uid": "u1", "cluster_id": "c", "labels": {"a": "1", "b": ""}},
  "provider_spec": {"size": "s", "disks": [{"gib": 2}], "credentialsSecret": {"name": "x"}, "userDataSecret": null},
  "user_data": "hunter2"}`

func TestLocalsAreEvaluatedForVariables(t *testing.T) {
	raw, err := moduletest.LoadStack(t, moduletest.Change{"locals.tf", "  provider_id", "  nothing = [null, 1.50, 12345678901234567890, \"<\"]\n  provider_id"}).Locals([]byte(stackVariables))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"disks":[{"size":2048}],"labels":{"a":"1","id":"example://u1"},"nothing":[null,1.5,12345678901234567890,"<"],"provider_id":"example://u1"}`
	if diff := cmp.Diff(want, string(bytes.ReplaceAll(raw, []byte(`\u003c`), []byte("<")))); diff != "" {
		t.Errorf("locals (-want +got):\n%s", diff)
	}
	if !json.Valid(raw) {
		t.Errorf("no JSON: %s", raw)
	}
	without := moduletest.LoadStack(t, moduletest.Change{"locals.tf", "", ""}, moduletest.Change{"Pulumi.yaml", "  locals:\n    type: object\n", ""}, moduletest.Change{"Pulumi.yaml", "      labels: ${locals.labels}\n", ""})
	if raw, err := without.Locals([]byte(stackVariables)); raw != nil || err != nil {
		t.Errorf("locals %q, %v where there are none; want nothing", raw, err)
	}
}

func TestALocalWithoutAValueIsReportedWithoutTheVariables(t *testing.T) {
	loaded := moduletest.LoadStack(t, moduletest.Change{"locals.tf", "  provider_id", "  size = parseint(var.provider_spec.size, 10)\n  twice = local.size * 2\n  provider_id"})
	_, err := loaded.Locals([]byte(stackVariables))
	if err == nil || err.Error() != `the stack "example" cannot compute local.size (locals.tf:2): Invalid function argument` {
		t.Errorf("error %v", err)
	}
	var failed *module.LocalError
	if !errors.As(err, &failed) || failed.Detail == "" || len(failed.References) != 1 || contract.Describe(failed.References[0]) != "var.provider_spec.size" {
		t.Errorf("error %+v, want its detail, and the field that it depends on", failed)
	}
	if _, err := loaded.Locals([]byte(`{"machine": {}}`)); err == nil {
		t.Error("want an error where the variables are not of their types")
	}
}

func TestTheReasonOfALocalNamesWhatOthersDependOn(t *testing.T) {
	loaded := moduletest.LoadStack(t, moduletest.Change{"locals.tf", "  provider_id", "  b = parseint(local.a, 10)\n  a = lower(var.provider_spec.size)\n  provider_id"})
	_, err := loaded.Locals([]byte(stackVariables))
	var failed *module.LocalError
	if !errors.As(err, &failed) || len(failed.References) != 1 || contract.Describe(failed.References[0]) != "var.provider_spec.size" {
		t.Errorf("error %+v, want the field that the local depends on through another", failed)
	}
}

func TestLocalsMayBeUnknown(t *testing.T) {
	loaded := moduletest.LoadStack(t)
	values, err := loaded.EvalLocals(map[string]cty.Value{
		module.VariableMachine:      cty.UnknownVal(module.MachineType),
		module.VariableProviderSpec: cty.UnknownVal(loaded.Variable(module.VariableProviderSpec).Type.WithoutOptionalAttributesDeep()),
	})
	if err != nil || values["disks"].IsKnown() {
		t.Errorf("locals %v, %v of a Machine that is unknown; want them unknown", values, err)
	}
}

func TestRestoreReturnsTheStackThatWasLoaded(t *testing.T) {
	loaded := moduletest.LoadStack(t)
	var packed bytes.Buffer // as it is stored
	if err := module.WriteArchive(&packed, loaded.Files()); err != nil {
		t.Fatal(err)
	}
	files, err := module.ReadArchive(&packed)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := load.Restore(files)
	if err != nil {
		t.Fatal(err)
	}
	if restored.Reference() != loaded.Reference() || restored.Engine() != loaded.Engine() || restored.InstanceAddress() != loaded.InstanceAddress() {
		t.Errorf("restored %s for %s with %s", restored.Reference(), restored.Engine(), restored.InstanceAddress())
	}
	if diff := cmp.Diff(loaded.Packages(), restored.Packages()); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	want, err := loaded.Locals([]byte(stackVariables))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := restored.Locals([]byte(stackVariables)); err != nil || !bytes.Equal(got, want) || len(restored.LookupFiles()) != 1 {
		t.Errorf("locals %s, %v, want %s, and the lookup", got, err, want)
	}
}

func TestRestoreRefusesAStackWhoseLocalsItCannotEvaluate(t *testing.T) {
	files := moduletest.ChangedStack(t, moduletest.Change{"locals.tf", "  provider_id", "  later = newfunction(1)\n  provider_id"})
	var failed *contract.Error
	if _, err := load.Restore(moduletest.FS(files)); !errors.As(err, &failed) || failed.Engine != v1alpha1.EnginePulumi {
		t.Errorf("error %v, want one that says that this version cannot read it", err)
	}
}

func TestAnArchiveKeepsAStack(t *testing.T) {
	var packed bytes.Buffer
	if err := module.WriteArchive(&packed, moduletest.FS(moduletest.Stack())); err != nil {
		t.Fatal(err)
	}
	files, err := module.ReadArchive(&packed)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := load.Module(files)
	if err != nil || loaded.Reference() != moduletest.LoadStack(t).Reference() {
		t.Errorf("unpacked %v, %v, want the stack that was packed", loaded, err)
	}
}

func TestAStackAndAModuleMayShareAName(t *testing.T) {
	hcl, stack := moduletest.Load(t), moduletest.LoadStack(t)
	catalog, err := module.NewCatalog(stack, hcl)
	if err != nil {
		t.Fatal(err)
	}
	for engine, want := range map[v1alpha1.Engine]*module.Module{v1alpha1.EngineTerraform: hcl, v1alpha1.EnginePulumi: stack} {
		if found, err := catalog.Named(engine, "example"); err != nil || found != want {
			t.Errorf("%s: found %v, %v", engine, found, err)
		}
	}
	_, err = catalog.Named(v1alpha1.EnginePulumi, "other")
	if err == nil || err.Error() != `no stack is called "other"; known are example` {
		t.Errorf("error %v", err)
	}
	_, err = catalog.Find("a/b", "C")
	var unknown *module.UnknownKindError
	wantKnown := []string{
		"example.io/v1 ExampleProviderSpec", "example.io/v1beta1 ExampleProviderSpec",
		"machine-iac.io/v1alpha1 PulumiMachineProviderSpec", "machine-iac.io/v1alpha1 TerraformMachineProviderSpec",
	}
	if !errors.As(err, &unknown) || !cmp.Equal(wantKnown, unknown.Known) {
		t.Errorf("error %v, want it to name the kinds for any module of both engines", err)
	}
	if diff := cmp.Diff([]string{hcl.Reference(), stack.Reference()}, []string{catalog.Modules()[0].Reference(), catalog.Modules()[1].Reference()}); diff != "" {
		t.Errorf("modules, the stack behind the module of its name (-want +got):\n%s", diff)
	}
	without, err := module.NewCatalog(hcl)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := without.Named(v1alpha1.EnginePulumi, "example"); err == nil || err.Error() != `no stack is called "example"; no stack is loaded` {
		t.Errorf("error %v", err)
	}
	if _, err := module.NewCatalog(stack, stack); err == nil || err.Error() != `building the module catalog: two stacks are called "example"; rename one` {
		t.Errorf("error %v of two stacks with one name", err)
	}
}
