package modules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// repository is where the paths of the README begin.
const repository = ".."

// evidence is a cell of the README's table of platforms: a word, a file of tests, and the test in it that shows the word to be true.
var evidence = regexp.MustCompile(`^\[[^\]]+\]\(([^ )]+) "([^"]+)"\)$`)

// TestThePlatformsOfTheREADMEAreShown looks up each test that the README's table of platforms names, and each module in its head.
func TestThePlatformsOfTheREADMEAreShown(t *testing.T) {
	rows := platforms(t)
	for _, name := range folders(t, ".") {
		if !slices.ContainsFunc(rows[0], func(cell string) bool { return strings.HasSuffix(cell, "(modules/"+name+"/README.md)") }) {
			t.Errorf("the module %s has no column", name)
		}
	}
	for _, row := range rows[2:] {
		if len(row) != len(rows[0]) {
			t.Errorf("the row %q has %d cells; want %d", row[0], len(row), len(rows[0]))
		}
		for _, cell := range row[1:] {
			if cell == "-" {
				continue
			}
			found := evidence.FindStringSubmatch(cell)
			if found == nil {
				t.Errorf("%s: %q is neither - nor a link to a file of tests with the name of a test as its title", row[0], cell)
				continue
			}
			content, err := os.ReadFile(filepath.Join(repository, found[1]))
			if err != nil {
				t.Errorf("%s: %v", row[0], err)
			} else if !hasTest(string(content), found[2]) {
				t.Errorf("%s: %s has no test called %q", row[0], found[1], found[2])
			}
		}
	}
}

// hasTest tells whether a file has a run, a function, a case or a spec of a name. That of a spec may be cut short.
func hasTest(content, name string) bool {
	return strings.Contains(content, "run \""+name+"\" {") || strings.Contains(content, "func "+name+"(t *testing.T)") ||
		strings.Contains(content, "\t\""+name+"\": {") || strings.Contains(content, "It(\""+name)
}

// platforms answers the cells of the README's table, head and ruler first.
func platforms(t *testing.T) [][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n## Platforms\n")
	if !found {
		t.Fatal("README.md has no section Platforms")
	}
	section, _, _ = strings.Cut(section, "\n## ")
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
		t.Fatal("the section Platforms of README.md has no table")
	}
	return rows
}
