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

// proof is a cell with the name of a test, and the file that has it.
var proof = regexp.MustCompile("^\\[`([^`]+)`\\]\\(([^ )]+)\\)$")

// TestEveryClaimAboutAPlatformHasATest compares the summary of the page with the tables of the platforms, and looks up each test in them.
func TestEveryClaimAboutAPlatformHasATest(t *testing.T) {
	content, err := os.ReadFile(platformsPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range folders(t, ".") {
		if !strings.Contains(string(content), "\nModule: [modules/"+name+"](../modules/"+name+"/README.md)\n") {
			t.Errorf("the module %s has no section", name)
		}
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(content), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		sections[title] = text
	}
	summary := tableOf(t, sections["Summary"])
	for column, head := range summary[0] {
		platform, _, _ := strings.Cut(strings.TrimPrefix(head, "["), "]")
		if column == 0 {
			continue
		}
		rows := tableOf(t, sections[platform])[2:]
		for _, claim := range summary[2:] {
			if claim[column] == "-" {
				continue
			}
			if len(rows) == 0 || rows[0][0] != claim[0] || rows[0][1] != claim[column] {
				t.Fatalf("%s: the table lacks the row %q, %q of the summary", platform, claim[0], claim[column])
			}
			checkProof(t, filepath.Dir(platformsPage), platform+", "+claim[0], rows[0][2])
			rows = rows[1:]
		}
		if len(rows) > 0 {
			t.Errorf("%s: the summary lacks %q", platform, rows[0][0])
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
