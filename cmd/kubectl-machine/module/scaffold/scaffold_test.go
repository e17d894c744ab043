package scaffold

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

func TestANewModuleKeepsTheContract(t *testing.T) {
	cases := map[string]struct {
		options       Options
		wantKind      string
		wantVersion   string
		wantProviders []string
	}{
		"a name alone, the rest is made from it": {
			options:  Options{Name: "my-cloud"},
			wantKind: "MyCloudMachineProviderSpec", wantVersion: "my-cloud.machine-iac.io/v1alpha1",
		},
		"a kind of somebody else's": {
			options:  Options{Name: "acme", Kind: "AcmeSpec", APIVersion: "acme.example.com/v1beta1"},
			wantKind: "AcmeSpec", wantVersion: "acme.example.com/v1beta1",
		},
		"a provider, pinned for both engines": {
			options:  Options{Name: "acme", Provider: "acme/cloud", ProviderVersion: "1.2.3"},
			wantKind: "AcmeMachineProviderSpec", wantVersion: "acme.machine-iac.io/v1alpha1",
			wantProviders: []string{"registry.opentofu.org/acme/cloud 1.2.3", "registry.terraform.io/acme/cloud 1.2.3"},
		},
		"a provider of a registry of its own, which is the same for both engines": {
			options:  Options{Name: "acme", Provider: "registry.example.com/acme/cloud-beta", ProviderVersion: "1.2.3-rc1"},
			wantKind: "AcmeMachineProviderSpec", wantVersion: "acme.machine-iac.io/v1alpha1",
			wantProviders: []string{"registry.example.com/acme/cloud-beta 1.2.3-rc1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder, err := Write(t.TempDir(), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := load.Module(os.DirFS(folder))
			if err != nil {
				t.Fatal(err)
			}
			if loaded.Name() != tc.options.Name || filepath.Base(folder) != tc.options.Name {
				t.Errorf("the module %q lies in %s; want both to be %q", loaded.Name(), folder, tc.options.Name)
			}
			if !loaded.Serves(tc.wantVersion, tc.wantKind) {
				t.Errorf("it serves %+v; want %s %s", loaded.Spec().ProviderSpecs, tc.wantVersion, tc.wantKind)
			}
			if loaded.Spec().Lookup == nil || len(loaded.LookupFiles()) == 0 {
				t.Error("it has no lookup: a create that was cut off would need a person")
			}
			if loaded.Spec().Adopt == nil || len(loaded.AdoptFiles()) == 0 {
				t.Error("it has no adopt/, whose place its author then does not see")
			}
			if loaded.Spec().Inventory == nil || len(loaded.InventoryFiles()) == 0 {
				t.Error("it has no inventory/, whose place its author then does not see")
			}
			var providers []string
			for _, provider := range loaded.Providers() {
				providers = append(providers, provider.Source()+" "+provider.Version)
			}
			if diff := cmp.Diff(tc.wantProviders, providers); diff != "" {
				t.Errorf("its providers (-want +got):\n%s", diff)
			}
			expectNoTemplates(t, folder)
		})
	}
}

// expectNoTemplates fails on a file that is still a template, or that nobody but its owner may read.
func expectNoTemplates(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("%s has the mode %s; want it readable for all", path, info.Mode())
		}
		if entry.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		if strings.HasSuffix(path, templateSuffix) || strings.Contains(string(content), "{{") {
			t.Errorf("%s is a template still", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWrongOptionsAreRefusedWithTheFix(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    []string
	}{
		"no name":                               {options: Options{}, want: []string{`invalid name ""`, "lower-case letters"}},
		"a name that is a path":                 {options: Options{Name: "../acme"}, want: []string{`invalid name "../acme"`}},
		"a name that could not be a file's":     {options: Options{Name: "Acme_1"}, want: []string{`invalid name "Acme_1"`}},
		"a kind that would be a template":       {options: Options{Name: "acme", Kind: "{{.Name}}"}, want: []string{"invalid kind", "camel case"}},
		"a version without a group":             {options: Options{Name: "acme", APIVersion: "v1"}, want: []string{`invalid API version "v1"`, "use group/version"}},
		"a provider without a namespace":        {options: Options{Name: "acme", Provider: "aws", ProviderVersion: "1.2.3"}, want: []string{`invalid provider "aws"`, "namespace/type"}},
		"a provider without a version":          {options: Options{Name: "acme", Provider: "hashicorp/aws"}, want: []string{`invalid provider version ""`, "an exact version"}},
		"a version that is a constraint":        {options: Options{Name: "acme", Provider: "hashicorp/aws", ProviderVersion: "~> 1.2"}, want: []string{`invalid provider version "~> 1.2"`}},
		"a version without a provider":          {options: Options{Name: "acme", ProviderVersion: "1.2.3"}, want: []string{"without a provider"}},
		"two mistakes, which are both reported": {options: Options{Name: "acme", Kind: "acme", APIVersion: "v1"}, want: []string{"invalid kind", "invalid API version"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := Write(dir, tc.options)
			if err == nil {
				t.Fatal("want an error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q; want it to say %q", err, want)
				}
			}
			expectEntries(t, dir)
		})
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "acme"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Write(dir, Options{Name: "acme"})
	if err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("the error is %v; want one that says that the folder is there already", err)
	}
	expectEntries(t, dir, "acme")
	expectEntries(t, filepath.Join(dir, "acme"))
}

func TestTheFolderIsMadeWhereItIsMissing(t *testing.T) {
	dir := t.TempDir()
	if _, err := Write(filepath.Join(dir, "a", "b"), Options{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	expectEntries(t, filepath.Join(dir, "a", "b"), "acme")
}

func expectEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s holds (-want +got):\n%s", dir, diff)
	}
}
