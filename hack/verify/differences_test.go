package verify

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testLink is a cell that links to the file of a test, relative to docs, with the test's name as the title.
var testLink = regexp.MustCompile(`^\[[^\]]+\]\(([^ )]+) "([^"]+)"\)$`)

// TestEveryDifferenceHasAReasonAndATest looks up the test of each row in docs/differences.md.
func TestEveryDifferenceHasAReasonAndATest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	compared, _, _ := strings.Cut(string(page), "\n## What is left out\n")
	rows := 0
	for line := range strings.Lines(compared) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| | MAO |") {
			continue
		}
		rows++
		for _, problem := range problemsOf(line) {
			t.Error(problem)
		}
	}
	if rows < 40 {
		t.Errorf("docs/differences.md has %d rows; the test looks for them in the wrong way", rows)
	}
}

// problemsOf returns the defects of a row with the columns what, MAO, here, why.
func problemsOf(line string) []string {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	if len(cells) != 4 {
		return []string{"a row has not four cells: " + line}
	}
	var problems []string
	for i, cell := range cells {
		if cell == "" {
			problems = append(problems, cells[0]+": cell "+string(rune('1'+i))+" is empty")
		}
	}
	found := testLink.FindStringSubmatch(cells[0])
	if found == nil {
		return append(problems, cells[0]+": no link to a test with its name as the title")
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", found[1]))
	if err != nil {
		return append(problems, cells[0]+": "+err.Error())
	}
	if !hasTest(string(content), found[2]) {
		problems = append(problems, cells[0]+": "+found[1]+" has no test called "+found[2])
	}
	return problems
}

// hasTest reports whether a Go file contains a function, spec or table of specs with a name. A spec may be named by its first
// words and "...".
func hasTest(content, name string) bool {
	spec := name + `"`
	if words, cut := strings.CutSuffix(name, "..."); cut {
		spec = words
	}
	for _, begin := range []string{"func " + name + "(t *testing.T)", `It("` + spec, `DescribeTable("` + spec} {
		if strings.Contains(content, begin) {
			return true
		}
	}
	return false
}

func TestProblemsOf(t *testing.T) {
	const good = `[a](../hack/verify/differences_test.go "TestProblemsOf")`
	for name, tc := range map[string]struct {
		line string
		want int
	}{
		"a whole row":         {"| " + good + " | b | c | d |", 0},
		"no reason":           {"| " + good + " | b | c | |", 1},
		"no test":             {"| a | b | c | d |", 1},
		"a test that is gone": {`| [a](../hack/verify/differences_test.go "TestNothing") | b | c | d |`, 1},
		"a file that is gone": {`| [a](../hack/verify/gone_test.go "TestNothing") | b | c | d |`, 1},
		"too few cells":       {"| " + good + " | b |", 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problemsOf(tc.line); len(got) != tc.want {
				t.Errorf("got %q, want %d", got, tc.want)
			}
		})
	}
}

func TestASpecIsFoundByItsFirstWords(t *testing.T) {
	const content = `It("leaves a Node alone", func() {})`
	for name, want := range map[string]bool{
		"leaves a Node alone": true, "leaves a Node...": true, "leaves a Node": false, "deletes a Node...": false,
	} {
		if got := hasTest(content, name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}
