package module

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module/moduletest"
)

func TestLoadAnswersWhatTheModuleSays(t *testing.T) {
	loaded := mustLoad(t)
	if got, want := loaded.Name(), "example"; got != want {
		t.Errorf("name: want %q, got %q", want, got)
	}
	if got, want := loaded.Reference(), "example@sha256:"+loaded.Digest(); got != want || len(loaded.Digest()) != 64 {
		t.Errorf("reference: want %q, got %q", want, got)
	}
	if got, want := loaded.InstanceAddress(), "example_instance.this"; got != want {
		t.Errorf("instance: want %q, got %q", want, got)
	}
	wantProviders := []Provider{{Host: OpenTofuHost, Namespace: "acme", Type: "example", Version: "1.2.3"}}
	if diff := cmp.Diff(wantProviders, loaded.Providers()); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"lookup/import.tf"}, loaded.LookupFiles()); diff != "" {
		t.Errorf("lookup files (-want +got):\n%s", diff)
	}
	if !loaded.Absent("importing: no such instance i-1") || loaded.Absent("importing: permission denied") {
		t.Error("want an instance to be absent only in the words of module.yaml")
	}
	spec := loaded.Spec()
	if got, want := spec.Credentials.Path, v1alpha1.DefaultCredentialsPath; got != want {
		t.Errorf("credentials path: want the default %q, got %q", want, got)
	}
	wantUserData := &v1alpha1.ModuleUserData{Path: "userDataSecret.name", Key: "userData"}
	if diff := cmp.Diff(wantUserData, spec.UserData); diff != "" {
		t.Errorf("user data comes by default where the type has the path (-want +got):\n%s", diff)
	}
	if got, want := spec.Capacity.InstanceTypes[0].Architecture, "amd64"; got != want {
		t.Errorf("architecture: want the default %q, got %q", want, got)
	}
}

func TestLoadAnswersTheTypesOfVariables(t *testing.T) {
	loaded := mustLoad(t)
	want := cty.ObjectWithOptionalAttrs(map[string]cty.Type{
		"size":              cty.String,
		"disks":             cty.List(cty.Object(map[string]cty.Type{"gib": cty.Number})),
		"credentialsSecret": cty.Object(map[string]cty.Type{"name": cty.String}),
		"userDataSecret":    cty.Object(map[string]cty.Type{"name": cty.String}),
	}, []string{"disks", "userDataSecret"})
	spec := loaded.Variable(VariableProviderSpec)
	if !spec.Type.Equals(want) {
		t.Errorf("want %#v, got %#v", want, spec.Type)
	}
	if spec.Defaults == nil || !spec.Defaults.DefaultValues["disks"].RawEquals(cty.ListValEmpty(want.AttributeType("disks").ElementType())) {
		t.Errorf("want an empty list as the default of disks, got %#v", spec.Defaults)
	}
	if userData := loaded.Variable(VariableUserData); !userData.Sensitive || userData.Description == "" {
		t.Errorf("want user_data sensitive and described, got %+v", userData)
	}
}

func TestFieldsThatNameSecrets(t *testing.T) {
	var (
		generic       = change{"module.yaml", "  providerSpecs:\n    - apiVersions: [example.io/v1, example.io/v1beta1]\n      kind: ExampleProviderSpec\n", ""}
		noUserData    = change{"variables.tf", "    userDataSecret    = optional(object({ name = string }))\n", ""}
		noCredentials = change{"variables.tf", "    credentialsSecret = object({ name = string })\n", ""}
		onlyKey       = change{"module.yaml", "  credentials:\n", "  userData:\n    key: ignition\n  credentials:\n"}
	)
	tests := map[string]struct {
		changes                            []change
		wantCredentials, wantPath, wantKey string
	}{
		"both are there":                         {wantCredentials: "credentialsSecret.name", wantPath: "userDataSecret.name", wantKey: "userData"},
		"a module's own kind has no user data":   {changes: []change{noUserData}, wantCredentials: "credentialsSecret.name", wantKey: "userData"},
		"a module without a kind may have both":  {changes: []change{generic}, wantCredentials: "credentialsSecret.name", wantPath: "userDataSecret.name", wantKey: "userData"},
		"a module without a kind may have none":  {changes: []change{generic, noUserData, noCredentials}, wantKey: "userData"},
		"nor does it need the field for its key": {changes: []change{generic, noUserData, onlyKey}, wantCredentials: "credentialsSecret.name", wantKey: "ignition"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			loaded := mustLoad(t, tc.changes...)
			spec := loaded.Spec()
			if got := spec.Credentials.Path; got != tc.wantCredentials {
				t.Errorf("credentials: want the path %q, got %q", tc.wantCredentials, got)
			}
			if diff := cmp.Diff(&v1alpha1.ModuleUserData{Path: tc.wantPath, Key: tc.wantKey}, spec.UserData); diff != "" {
				t.Errorf("user data (-want +got):\n%s", diff)
			}
			restored, err := Restore(loaded.Files())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(spec, restored.Spec()); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilesHoldExactlyWhatInfluencesARun(t *testing.T) {
	loaded := mustLoad(t, change{".terraform/providers/left-over", "", "x"})
	var got []string
	err := fs.WalkDir(loaded.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			got = append(got, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		".terraform.lock.hcl", "lookup/import.tf", "main.tf", "module.yaml", "outputs.tf", "templates/user-data.tftpl", "terraform.tf", "variables.tf",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := fstest.TestFS(loaded.Files(), want...); err != nil {
		t.Error(err)
	}
}

func TestDigest(t *testing.T) {
	plain := mustLoad(t).Digest()
	tests := map[string]struct {
		changes    []change
		wantChange bool
	}{
		"stays when nothing changes":            {},
		"stays when the README changes":         {changes: []change{{"README.md", "", "# other\n"}}},
		"stays when a test changes":             {changes: []change{{"tests/more.tftest.hcl", "", "run \"more\" {}\n"}}},
		"stays when an example changes":         {changes: []change{{"examples/machineset.yaml", "", "kind: Other\n"}}},
		"changes with the HCL":                  {changes: []change{{"main.tf", "var.machine.uid", "var.machine.name"}}, wantChange: true},
		"changes with module.yaml":              {changes: []change{{"module.yaml", "no such", "not a"}}, wantChange: true},
		"changes with the lock file":            {changes: []change{{".terraform.lock.hcl", "\n}", "\n  hashes = []\n}"}}, wantChange: true},
		"changes with the lookup":               {changes: []change{{"lookup/import.tf", "instances/", "i/"}}, wantChange: true},
		"changes with a file that HCL may read": {changes: []change{{"templates/user-data.tftpl", "hello", "bye"}}, wantChange: true},
		"changes when a file is renamed": {
			changes: []change{{"templates/user-data.tftpl", "", ""}, {"templates/user-data.txt", "", "hello\n"}}, wantChange: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mustLoad(t, tc.changes...).Digest(); (got != plain) != tc.wantChange {
				t.Errorf("want a change: %t, got %s after %s", tc.wantChange, got, plain)
			}
		})
	}
}

func TestLoadRefusesAFolderThatIsNoModule(t *testing.T) {
	many := map[string]string{}
	for i := range 256 + 1 {
		many[strings.Repeat("a", i+1)] = ""
	}
	tests := map[string]struct {
		files   fs.FS
		wantErr string
	}{
		"too many files": {files: moduletest.FS(many), wantErr: "more than 256 files"},
		"a huge file":    {files: moduletest.FS(map[string]string{"main.tf": strings.Repeat("#", (256<<10)+1)}), wantErr: "main.tf has more than"},
		"a symbolic link": {
			files:   fstest.MapFS{"main.tf": &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}},
			wantErr: "main.tf is not a regular file",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Load(tc.files)
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("want an error with %q, got %v", tc.wantErr, err)
			}
		})
	}
}

func TestLoadAllNamesTheFolderOfABrokenModule(t *testing.T) {
	fsys := fstest.MapFS{"embed.go": &fstest.MapFile{Data: []byte("package modules\n")}}
	for name, file := range moduletest.FS(moduletest.Module()) {
		fsys["example/"+name] = file
		fsys["other/"+name] = file
	}
	_, err := LoadAll(fsys)
	var broken *ContractError
	if !errors.As(err, &broken) || !strings.Contains(err.Error(), `is "example" in the folder other`) {
		t.Fatalf("want the folder named, got %v", err)
	}
	for name := range fsys {
		if strings.HasPrefix(name, "other/") {
			delete(fsys, name)
		}
	}
	loaded, err := LoadAll(fsys)
	if err != nil || len(loaded) != 1 || loaded[0].Name() != "example" {
		t.Errorf("want the one module, got %v, %v", loaded, err)
	}
}

func TestCatalog(t *testing.T) {
	first := mustLoad(t)
	second := mustLoad(t, change{"module.yaml", "name: example", "name: second"}, change{"module.yaml", "kind: ExampleProviderSpec", "kind: SecondProviderSpec"})
	catalog, err := NewCatalog(second, first)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := catalog.Find("example.io/v1beta1", "SecondProviderSpec"); err != nil || found != second {
		t.Errorf("want the second module, got %v, %v", found, err)
	}
	if !first.Serves("example.io/v1", "ExampleProviderSpec") || first.Serves("example.io/v2", "ExampleProviderSpec") {
		t.Error("want Serves to go by apiVersion and kind")
	}
	if got := catalog.Modules(); !slices.Equal(got, []*Module{first, second}) {
		t.Errorf("want both modules sorted by name, got %v", got)
	}
	_, err = catalog.Find("example.io/v2", "ExampleProviderSpec")
	want := &UnknownKindError{APIVersion: "example.io/v2", Kind: "ExampleProviderSpec", Known: []string{
		"example.io/v1 ExampleProviderSpec", "example.io/v1 SecondProviderSpec",
		"example.io/v1beta1 ExampleProviderSpec", "example.io/v1beta1 SecondProviderSpec",
		"machine-iac.io/v1alpha1 TerraformMachineProviderSpec",
	}}
	var got *UnknownKindError
	if !errors.As(err, &got) {
		t.Fatalf("want an UnknownKindError, got %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCatalogFindsAModuleByName(t *testing.T) {
	first := mustLoad(t)
	second := mustLoad(t, change{"module.yaml", "name: example", "name: second"}, change{"module.yaml",
		"  providerSpecs:\n    - apiVersions: [example.io/v1, example.io/v1beta1]\n      kind: ExampleProviderSpec\n", ""})
	catalog, err := NewCatalog(second, first)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := catalog.Named(v1alpha1.EngineTerraform, "second"); err != nil || found != second {
		t.Errorf("want the second module, got %v, %v", found, err)
	}
	_, err = catalog.Named(v1alpha1.EngineTerraform, "Second")
	if want := `no provider module is called "Second"; known are example, second`; err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	empty, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	_, err = empty.Named(v1alpha1.EngineTerraform, "example")
	if want := `no provider module is called "example"; no provider module is loaded`; err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	var unknown *UnknownKindError
	if _, err = empty.Find("a/v1", "B"); !errors.As(err, &unknown) || len(unknown.Known) != 0 {
		t.Errorf("want no kind known where there is no module, got %v", err)
	}
}

func TestCatalogRefusesWhatIsAmbiguous(t *testing.T) {
	tests := map[string]struct {
		changes []change
		wantErr string
	}{
		"two modules of one name":     {wantErr: `two modules are called "example"`},
		"two modules serve one kind":  {changes: []change{{"module.yaml", "name: example", "name: other"}}, wantErr: `"example" and "other" both serve example.io/v1 ExampleProviderSpec`},
		"the later version is shared": {changes: []change{{"module.yaml", "name: example", "name: other"}, {"module.yaml", "example.io/v1,", "example.io/v2,"}}, wantErr: "both serve example.io/v1beta1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewCatalog(mustLoad(t), mustLoad(t, tc.changes...))
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("want an error with %q, got %v", tc.wantErr, err)
			}
		})
	}
}
