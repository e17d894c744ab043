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
			checkProof(t, platform+", "+claim[0], rows[0][2])
			rows = rows[1:]
		}
		if len(rows) > 0 {
			t.Errorf("%s: the summary lacks %q", platform, rows[0][0])
		}
	}
}

func checkProof(t *testing.T, claim, cell string) {
	t.Helper()
	found := proof.FindStringSubmatch(cell)
	if found == nil {
		t.Errorf("%s: %q is no link from the name of a test to its file", claim, cell)
		return
	}
	content, err := os.ReadFile(filepath.Join(filepath.Dir(platformsPage), found[2]))
	if err != nil {
		t.Errorf("%s: %v", claim, err)
	} else if !hasTest(string(content), found[1]) {
		t.Errorf("%s: %s has no test called %q", claim, found[2], found[1])
	}
}

// hasTest reports whether a file has a run, a function, a case or a spec of a name. That of a spec may be cut short.
func hasTest(content, name string) bool {
	return strings.Contains(content, "run \""+name+"\" {") || strings.Contains(content, "func "+name+"(t *testing.T)") ||
		strings.Contains(content, "\t\""+name+"\": {") || strings.Contains(content, "It(\""+name)
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
		t.Fatal("a section of docs/platforms.md has no table")
	}
	return rows
}
