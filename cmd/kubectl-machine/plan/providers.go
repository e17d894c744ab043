package plan

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

const (
	engineHint   = "run 'make plugin' in the repository, install OpenTofu, or name its file with --engine-path"
	providerHint = "run 'make plugin' in the repository, or fill a folder with 'tofu providers mirror' " +
		"and name it with --provider-mirror"
	// unavailable is how engines report a provider without a source, before "resolve" or "query
	// available".
	unavailable = " provider packages; Could not "
)

// checkProviders returns an error that lists each provider that a module pins and the mirror lacks.
// Without a mirror, the engine gets providers as its own configuration says.
func checkProviders(mirror string, requests []*preview.Request) error {
	if info, err := os.Stat(mirror); err != nil || !info.IsDir() {
		return nil // no mirror, or the planner's error says what is wrong with it
	}
	var missing []string
	for _, one := range requests {
		for _, needed := range provider.Lacking(mirror, provider.Pinned(one.Module.Files())) {
			lacks := fmt.Sprintf("%s (module %s)", needed, one.Module.Name())
			if !slices.Contains(missing, lacks) {
				missing = append(missing, lacks)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("missing providers in %s for %s_%s: %s; %s",
		mirror, runtime.GOOS, runtime.GOARCH, strings.Join(missing, ", "), providerHint)
}
