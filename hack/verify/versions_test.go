package verify

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTheDevelopmentClusterHasTheVersionsOfTheProduct ensures that both go.mod files select the same module versions.
// Otherwise Go compiles packages twice.
func TestTheDevelopmentClusterHasTheVersionsOfTheProduct(t *testing.T) {
	product, cluster := requirements(t, "go.mod"), requirements(t, "hack/tools/cluster/go.mod")
	shared := 0
	for module, version := range product {
		other, known := cluster[module]
		if !known {
			continue
		}
		shared++
		if other != version {
			t.Errorf("%s: go.mod has %s, hack/tools/cluster %s; run 'go get %[1]s@VERSION' with the newer one in the "+
				"other", module, version, other)
		}
	}
	if shared < 50 {
		t.Errorf("got %d shared modules; the test would hold nothing", shared)
	}
}

var requirement = regexp.MustCompile(`(?m)^(?:require |\t)(\S+) (v\S+)(?: // indirect)?$|^\t(\S+) => \S+ (v\S+)$`)

func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, found := range requirement.FindAllStringSubmatch(string(content), -1) {
		if found[1] != "" {
			out[found[1]] = found[2]
		}
	}
	// replacements override requirements, so they come last
	for _, found := range requirement.FindAllStringSubmatch(string(content), -1) {
		if found[3] != "" {
			out[found[3]] = found[4]
		}
	}
	return out
}
