package chaos

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// The manager of a round serves both the copies and what they are made from.
func TestQuickModulesAreServedBesideTheirOriginals(t *testing.T) {
	made := t.TempDir()
	for _, source := range quickSources {
		if err := QuickCopy(filepath.Join("../..", source), filepath.Join(made, filepath.Dir(source)), 8); err != nil {
			t.Error(err)
		}
	}
	var all []*module.Module
	for _, folder := range []string{"../../modules", "../../stacks", filepath.Join(made, "modules"), filepath.Join(made, "stacks")} {
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
