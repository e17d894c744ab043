package stacks_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	// comparison is the heading of the section in which a stack's README compares it with the module of the same name.
	comparison = "\n## Compared with the provider module\n"
	// same is what the file beside a manifest has where the stack's plan is that of the module; cmd/kubectl-machine writes it.
	same = "The stack makes the same.\n"
)

// proof is a cell with the name of a test, and the file that has it.
var proof = regexp.MustCompile("^\\[`([^`]+)`\\]\\(([^ )]+)\\)$")

// TestEveryDifferenceOfAStackIsInItsREADME reads how each stack differs from the module of the same name, and looks up the tests. A manifest whose
// plans differ must be the test of a row that says so.
func TestEveryDifferenceOfAStackIsInItsREADME(t *testing.T) {
	for _, name := range folders(t, ".") {
		content, err := os.ReadFile(filepath.Join(name, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, section, found := strings.Cut(string(content), comparison)
		if !found {
			if name != "kubemark" { // it makes a Node of the same values
				t.Errorf("%s: the README does not compare it with the module", name)
			}
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		explained := explainedIn(t, name, section)
		files, err := filepath.Glob(filepath.Join("..", "test", "manifests", name, "*.stack"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: there are no plans of manifests, %v", name, err)
		}
		for _, file := range files {
			if manifest := strings.TrimSuffix(filepath.Base(file), ".stack"); !plansTheSame(t, file) && !slices.Contains(explained, manifest) {
				t.Errorf("%s: the plan of %s differs from the module's, and no row of the README says so", name, manifest)
			}
		}
	}
}

// explainedIn checks the rows of a comparison, and returns the manifests of those that are not the same.
func explainedIn(t *testing.T, stack, section string) []string {
	t.Helper()
	var explained []string
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 4 || cells[0] == "field or behaviour" || strings.HasPrefix(cells[0], "--") {
			continue
		}
		rows++
		claim := stack + ", " + cells[0]
		manifest := checkRow(t, stack, claim, cells)
		switch {
		case manifest != "" && cells[1] != "same":
			explained = append(explained, manifest)
		case manifest != "" && !plansTheSame(t, filepath.Join("..", "test", "manifests", stack, manifest+".stack")):
			t.Errorf("%s: it is the same, but the plan of %s is not", claim, manifest)
		}
	}
	if rows == 0 {
		t.Errorf("%s: the comparison has no rows", stack)
	}
	return explained
}

// checkRow checks one row, and returns the manifest that is its test, if it is one.
func checkRow(t *testing.T, stack, claim string, cells []string) (manifest string) {
	t.Helper()
	if !slices.Contains([]string{"same", "better", "different"}, cells[1]) {
		t.Errorf("%s: want same, better or different, got %q", claim, cells[1])
	} else if cells[1] != "same" && cells[2] == "" {
		t.Errorf("%s: it is %s, but not why", claim, cells[1])
	}
	found := proof.FindStringSubmatch(cells[3])
	if found == nil {
		t.Errorf("%s: %q is no link from the name of a test to its file", claim, cells[3])
		return ""
	}
	content, err := os.ReadFile(filepath.Join(stack, found[2]))
	if err != nil {
		t.Errorf("%s: %v", claim, err)
		return ""
	}
	if filepath.Base(found[2]) == found[1]+".yaml" {
		return found[1]
	}
	if !strings.Contains(string(content), "func "+found[1]+"(t *testing.T)") {
		t.Errorf("%s: %s has no test called %q", claim, found[2], found[1])
	}
	return ""
}

// plansTheSame reports whether the plans of a manifest are the same.
func plansTheSame(t *testing.T, file string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content) == same
}
