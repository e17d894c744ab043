package module_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestLoadReturnsWhatTheModuleSays(t *testing.T) {
	loaded := moduletest.Load(t)
	if got, want := loaded.Name(), "example"; got != want {
		t.Errorf("name: want %q, got %q", want, got)
	}
	if got, want := loaded.Reference(), "example@sha256:"+loaded.Digest(); got != want || len(loaded.Digest()) != 64 {
		t.Errorf("reference: want %q, got %q", want, got)
	}
	if got, want := loaded.InstanceAddress(), "example_instance.this"; got != want {
		t.Errorf("instance: want %q, got %q", want, got)
	}
	wantProviders := []module.Provider{{Host: module.OpenTofuHost, Namespace: "acme", Type: "example", Version: "1.2.3"}}
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
	if got, want := spec.Credentials.Path, module.DefaultCredentialsPath; got != want {
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

func TestLoadReturnsTheTypesOfVariables(t *testing.T) {
	loaded := moduletest.Load(t)
	want := cty.ObjectWithOptionalAttrs(map[string]cty.Type{
		"size":              cty.String,
		"disks":             cty.List(cty.Object(map[string]cty.Type{"gib": cty.Number})),
		"credentialsSecret": cty.Object(map[string]cty.Type{"name": cty.String}),
		"userDataSecret":    cty.Object(map[string]cty.Type{"name": cty.String}),
	}, []string{"disks", "userDataSecret"})
	spec := loaded.Variable(module.VariableProviderSpec)
	if !spec.Type.Equals(want) {
		t.Errorf("want %#v, got %#v", want, spec.Type)
	}
	if spec.Defaults == nil || !spec.Defaults.DefaultValues["disks"].RawEquals(cty.ListValEmpty(want.AttributeType("disks").ElementType())) {
		t.Errorf("want an empty list as the default of disks, got %#v", spec.Defaults)
	}
	if userData := loaded.Variable(module.VariableUserData); !userData.Sensitive || userData.Description == "" {
		t.Errorf("want user_data sensitive and described, got %+v", userData)
	}
}

func TestFieldsThatNameSecrets(t *testing.T) {
	var (
		generic       = moduletest.Change{"module.yaml", "  providerSpecs:\n    - apiVersions: [example.io/v1, example.io/v1beta1]\n      kind: ExampleProviderSpec\n", ""}
		noUserData    = moduletest.Change{"variables.tf", "    userDataSecret    = optional(object({ name = string }))\n", ""}
		noCredentials = moduletest.Change{"variables.tf", "    credentialsSecret = object({ name = string })\n", ""}
		onlyKey       = moduletest.Change{"module.yaml", "  credentials:\n", "  userData:\n    key: ignition\n  credentials:\n"}
	)
	tests := map[string]struct {
		changes                            []moduletest.Change
		wantCredentials, wantPath, wantKey string
	}{
		"both are there":                         {wantCredentials: "credentialsSecret.name", wantPath: "userDataSecret.name", wantKey: "userData"},
		"a module's own kind has no user data":   {changes: []moduletest.Change{noUserData}, wantCredentials: "credentialsSecret.name", wantKey: "userData"},
		"a module without a kind may have both":  {changes: []moduletest.Change{generic}, wantCredentials: "credentialsSecret.name", wantPath: "userDataSecret.name", wantKey: "userData"},
		"a module without a kind may have none":  {changes: []moduletest.Change{generic, noUserData, noCredentials}, wantKey: "userData"},
		"nor does it need the field for its key": {changes: []moduletest.Change{generic, noUserData, onlyKey}, wantCredentials: "credentialsSecret.name", wantKey: "ignition"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			loaded := moduletest.Load(t, tc.changes...)
			spec := loaded.Spec()
			if got := spec.Credentials.Path; got != tc.wantCredentials {
				t.Errorf("credentials: want the path %q, got %q", tc.wantCredentials, got)
			}
			if diff := cmp.Diff(&v1alpha1.ModuleUserData{Path: tc.wantPath, Key: tc.wantKey}, spec.UserData); diff != "" {
				t.Errorf("user data (-want +got):\n%s", diff)
			}
			restored, err := load.Restore(loaded.Files())
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
	loaded := moduletest.Load(t, moduletest.Change{".terraform/providers/left-over", "", "x"})
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
	plain := moduletest.Load(t).Digest()
	tests := map[string]struct {
		changes    []moduletest.Change
		wantChange bool
	}{
		"stays when nothing changes":            {},
		"stays when the README changes":         {changes: []moduletest.Change{{"README.md", "", "# other\n"}}},
		"stays when a test changes":             {changes: []moduletest.Change{{"tests/more.tftest.hcl", "", "run \"more\" {}\n"}}},
		"stays when an example changes":         {changes: []moduletest.Change{{"examples/machineset.yaml", "", "kind: Other\n"}}},
		"changes with the HCL":                  {changes: []moduletest.Change{{"main.tf", "input = var.machine.uid", "input = var.machine.name"}}, wantChange: true},
		"changes with module.yaml":              {changes: []moduletest.Change{{"module.yaml", "no such", "not a"}}, wantChange: true},
		"changes with the lock file":            {changes: []moduletest.Change{{".terraform.lock.hcl", "\n}", "\n  hashes = []\n}"}}, wantChange: true},
		"changes with the lookup":               {changes: []moduletest.Change{{"lookup/import.tf", "instances/", "i/"}}, wantChange: true},
		"changes with a file that HCL may read": {changes: []moduletest.Change{{"templates/user-data.tftpl", "hello", "bye"}}, wantChange: true},
		"changes when a file is renamed": {
			changes: []moduletest.Change{{"templates/user-data.tftpl", "", ""}, {"templates/user-data.txt", "", "hello\n"}}, wantChange: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := moduletest.Load(t, tc.changes...).Digest(); (got != plain) != tc.wantChange {
				t.Errorf("want a change: %t, got %s after %s", tc.wantChange, got, plain)
			}
		})
	}
}
