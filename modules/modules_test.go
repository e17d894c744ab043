package modules_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
)

// examples is where the modules are that are not built in.
const examples = "../examples/modules"

// kept is a module of this repository: its folder, and what the contract makes of it.
type kept struct {
	*module.Module
	files fs.FS
}

// each runs a test for each module of this repository, by the name of its folder.
func each(t *testing.T, test func(t *testing.T, m kept)) {
	t.Helper()
	for _, parent := range []string{".", examples} {
		for _, name := range folders(t, parent) {
			t.Run(name, func(t *testing.T) {
				test(t, keptIn(t, filepath.Join(parent, name)))
			})
		}
	}
}

// keptModules are those that were loaded, by their folders: a module does not change, and reading one takes its time.
var keptModules sync.Map

// keptIn returns the module in a folder.
func keptIn(t *testing.T, folder string) kept {
	t.Helper()
	if known, ok := keptModules.Load(folder); ok {
		return known.(kept)
	}
	files := os.DirFS(folder)
	loaded, err := load.Module(files)
	if err != nil {
		t.Fatal(err)
	}
	fresh := kept{Module: loaded, files: files}
	keptModules.Store(folder, fresh)
	return fresh
}

// folders returns the names of the modules in a folder.
func folders(t *testing.T, parent string) []string {
	t.Helper()
	descriptions, err := filepath.Glob(filepath.Join(parent, "*", "module.yaml"))
	if err != nil || len(descriptions) == 0 {
		t.Fatalf("looking for modules in %s: found %d, %v", parent, len(descriptions), err)
	}
	var names []string
	for _, description := range descriptions {
		names = append(names, filepath.Base(filepath.Dir(description)))
	}
	return names
}

func TestEveryModuleIsBuiltIn(t *testing.T) {
	entries, err := fs.ReadDir(modules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	var embedded []string
	for _, entry := range entries {
		embedded = append(embedded, entry.Name())
	}
	for _, name := range folders(t, ".") {
		if !slices.Contains(embedded, name) {
			t.Errorf("the folder %s is a module, but embed.go does not have it: add all:%[1]s", name)
		}
	}
}

func TestEveryModuleIsDestroyedWithoutUserData(t *testing.T) {
	each(t, func(t *testing.T, m kept) {
		bare := m.Bare()
		if len(bare.HCL) == 0 || slices.Contains(bare.Variables, module.VariableUserData) {
			t.Errorf("a destroy has the variables %v and\n%s\nwant the providers without user data", bare.Variables, bare.HCL)
		}
	})
}

// A URI can name files to sign in with, and sockets, of the manager.
func TestADestroyReachesLibvirtAsAProviderSpecMay(t *testing.T) {
	hcl := string(keptIn(t, "libvirt").Bare().HCL)
	if got := strings.Count(hcl, "validation {"); got != 4 || strings.Count(hcl, "var.provider_spec.uri)") != got {
		t.Errorf("a destroy has %d validations, want the four of uri:\n%s", got, hcl)
	}
}
