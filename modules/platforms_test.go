package modules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// platformsPage is the page with the matrix of platforms; its links are relative to its folder.
const platformsPage = "../docs/platforms.md"

// proof is a cell with the name of a test, and the file that has it. titled is one whose link has the name as its title.
var (
	proof  = regexp.MustCompile("^\\[`([^`]+)`\\]\\(([^ )]+)\\)$")
	titled = regexp.MustCompile(`^\[[^\]]+\]\(([^ )]+) "([^"]+)"\)$`)
)

// TestEveryClaimAboutAPlatformHasATest looks up the test of each cell of the page's first table, which has a column for each module.
func TestEveryClaimAboutAPlatformHasATest(t *testing.T) {
	content, err := os.ReadFile(platformsPage)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(content), "\n## ")
	table := tableOf(t, first)
	for _, name := range folders(t, ".") {
		if !strings.Contains(strings.Join(table[0], " "), "](../modules/"+name+"/README.md)") {
			t.Errorf("the table has no column for the module %s", name)
		}
	}
	for _, name := range folders(t, filepath.Join("..", "stacks")) {
		if !strings.Contains(rest, "](../stacks/"+name+"/README.md)") {
			t.Errorf("the page does not list the stack %s", name)
		}
	}
	for _, row := range table[2:] {
		for column, cell := range row[1:] {
			if cell == "-" {
				continue
			}
			if found := titled.FindStringSubmatch(cell); found != nil {
				cell = "[`" + found[2] + "`](" + found[1] + ")"
			}
			checkProof(t, filepath.Dir(platformsPage), table[0][column+1]+", "+row[0], cell)
		}
	}
}

// TestEveryRowOfALifeIsAStep compares the table that make life writes with its steps.
func TestEveryRowOfALifeIsAStep(t *testing.T) {
	content, err := os.ReadFile(platformsPage)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := os.ReadFile("../test/life/steps_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n## A Machine's life\n")
	written, _, found := strings.Cut(section, "<!-- to here -->")
	if !found {
		t.Fatal("the page has no table of make life")
	}
	for _, row := range tableOf(t, written)[4:] { // behind the provider and the infrastructure
		if !strings.Contains(string(steps), `"`+row[0]+`"`) {
			t.Errorf("test/life has no step %q", row[0])
		}
	}
}

// comparison is the heading of the section in which a module's README compares it with the reference controller.
const comparison = "\n## Compared with "

// TestEveryRowOfAComparisonHasATest reads how each module differs from the reference controller of its platform, and looks up the tests.
func TestEveryRowOfAComparisonHasATest(t *testing.T) {
	for _, name := range folders(t, ".") {
		content, err := os.ReadFile(filepath.Join(name, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, section, found := strings.Cut(string(content), comparison)
		if !found {
			if name != "kubemark" && name != "libvirt" { // there is no reference controller for these
				t.Errorf("%s: the README has no comparison with the reference controller", name)
			}
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, row := range tableOf(t, section)[2:] {
			if len(row) != 4 {
				t.Errorf("%s: want four cells, got %q", name, row)
				continue
			}
			switch claim := name + ", " + row[0]; {
			case row[1] != "same" && row[1] != "better" && row[1] != "different":
				t.Errorf("%s: want same, better or different, got %q", claim, row[1])
			case row[1] != "same" && row[2] == "":
				t.Errorf("%s: it is %s, but not why", claim, row[1])
			default:
				checkProof(t, name, claim, row[3])
			}
		}
	}
}

// checkProof looks up the test that a cell of a page in a folder names.
func checkProof(t *testing.T, folder, claim, cell string) {
	t.Helper()
	found := proof.FindStringSubmatch(cell)
	if found == nil {
		t.Errorf("%s: %q is no link from the name of a test to its file", claim, cell)
		return
	}
	content, err := os.ReadFile(filepath.Join(folder, found[2]))
	if err != nil {
		t.Errorf("%s: %v", claim, err)
	} else if planned := found[1] + ".yaml"; filepath.Base(found[2]) != planned && !hasTest(string(content), found[1]) {
		t.Errorf("%s: %s has no test called %q", claim, found[2], found[1])
	}
}

// hasTest reports whether a file has a run, a function, a case, a subtest or a spec of a name. That of a spec may be cut short.
func hasTest(content, name string) bool {
	return strings.Contains(content, "run \""+name+"\" {") || strings.Contains(content, "func "+name+"(t *testing.T)") ||
		strings.Contains(content, "\t\""+name+"\": {") || strings.Contains(content, "t.Run(\""+name+"\", ") || strings.Contains(content, "It(\""+name)
}

// tableOf returns the cells of the table in a section, head and ruler first.
func tableOf(t *testing.T, section string) [][]string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) < 3 {
		t.Fatal("the section has no table")
	}
	return rows
}
