package chaos

import (
	"path/filepath"
	"testing"
)

func TestQuickModulesAreModules(t *testing.T) {
	for _, source := range quickSources {
		if err := QuickCopy(filepath.Join("../..", source), filepath.Join(t.TempDir(), filepath.Dir(source)), 8); err != nil {
			t.Error(err)
		}
	}
}
