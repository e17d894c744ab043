package chaos

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// A round's manager serves both the copies and their originals.
func TestQuickModulesAreServedBesideTheirOriginals(t *testing.T) {
	long.Test(t)
	made := t.TempDir()
	for _, source := range quickSources {
		if err := QuickCopy(filepath.Join("../..", source), filepath.Join(made, filepath.Dir(source)), 8); err != nil {
			t.Error(err)
		}
	}
	var all []*module.Module
	for _, folder := range []string{
		"../../modules", "../../stacks", filepath.Join(made, "modules"), filepath.Join(made, "stacks"),
	} {
		loaded, err := load.Modules(os.DirFS(folder))
		if err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		all = append(all, loaded...)
	}
	if _, err := module.NewCatalog(all...); err != nil {
		t.Error(err)
	}
}
