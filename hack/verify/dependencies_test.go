package verify

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryDependencyIsArguedFor(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	direct, indirect := required(t)
	tools := toolModules(t)
	missing, stale := compare(firstCells(string(page)), slices.Concat(direct, tools),
		slices.Concat(direct, tools, indirect))
	for _, name := range missing {
		t.Errorf("docs/dependencies.md has no row for %s; say what it is for, why it and not another, and its "+
			"licence", name)
	}
	for _, name := range stale {
		t.Errorf("docs/dependencies.md has a row for %s, which nothing depends on any more; remove it", name)
	}
}

func TestCompare(t *testing.T) {
	const cells = " module \n `a/one`, `a/two` \n `b` \n---"
	missing, stale := compare(cells, []string{"a/two", "c"}, []string{"a/two", "b", "c"})
	if diff := cmp.Diff([]string{"c"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a/one"}, stale); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
}

// compare returns required names that are missing in cells, and unknown names in cells.
func compare(cells string, must, known []string) (missing, stale []string) {
	named := map[string]bool{}
	for at, part := range strings.Split(cells, "`") {
		if at%2 == 1 {
			named[part] = true
		}
	}
	for _, name := range must {
		if !named[name] {
			missing = append(missing, name)
		}
	}
	for name := range named {
		if !slices.Contains(known, name) {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return missing, stale
}

// required returns the modules in go.mod.
func required(t *testing.T) (direct, indirect []string) {
	t.Helper()
	if _, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil { // invalidates go test's cache when it changes
		t.Fatal(err)
	}
	command := exec.Command("go", "mod", "edit", "-json")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %s", command, err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatalf("reading what %s printed: %s", command, err)
	}
	for _, module := range file.Require {
		if module.Indirect {
			indirect = append(indirect, module.Path)
		} else {
			direct = append(direct, module.Path)
		}
	}
	return direct, indirect
}

func toolModules(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, parent := range []string{"hack/tools", "providers", "test/vcenter"} {
		files, err := filepath.Glob(filepath.Join(root, parent, "*", "go.mod"))
		if err != nil || len(files) == 0 {
			t.Fatalf("finding the modules of %s: %d found, error %v", parent, len(files), err)
		}
		for _, file := range files {
			out = append(out, parent+"/"+filepath.Base(filepath.Dir(file)))
		}
	}
	return out
}
