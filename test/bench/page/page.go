// Package page keeps docs/benchmarks.md: a head, and sections that each benchmark writes for itself. Those of other benchmarks stay
// as they are, so that one can be run alone.
package page

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
)

// head is what the page begins with.
const head = `# Benchmarks

` + "`make bench`" + ` measures and rewrites most sections, ` + "`make bench TESTFLAGS='-run NAME'`" + ` one of them;
` + "`make profile`" + `, ` + "`make life`" + ` and ` + "`make bench-field`" + ` write the others. Compare the ratios; the seconds
depend on the machine. CPU seconds include all child processes of the measured programs and exclude
the API server. Sections without ` + "`--apply-batch=1`" + ` were measured with ` + "`--apply-batch=10`" + `, except "In
the field", which has the default of 50.
`

// Section is a part of the page.
type Section struct {
	// Title is the heading, without marks.
	Title string
	// Text is Markdown without headings of the first two levels.
	Text string
}

// order is how sections follow one another; those that are not in it come last.
var order = []string{
	"What a Machine costs", "Where the time goes", "What an engine costs", "What idling costs", "What a MachineSet costs", "What the controllers write", "What a MachineDeployment costs",
	"What a rollout in place costs", "How soon a Machine is reconciled",
	"What a look costs", "Calls of the infrastructure", "What little memory does", "What a Machine of Gardener costs", "What admission costs", "What a preview costs",
}

// Machine reports in a few words what was measured on.
func Machine() string {
	return fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// Read returns the text of a section of a page file, "" where there is none.
func Read(file, title string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the page of benchmarks: %w", err)
	}
	for _, section := range split(string(content)) {
		if section.Title == title {
			return section.Text, nil
		}
	}
	return "", nil
}

// Write puts sections into a page file, in place of those with their titles. The file is made when it is missing.
func Write(file string, sections ...Section) error {
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the page of benchmarks: %w", err)
	}
	after := compose(string(before), sections)
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil { //nolint:gosec // documentation is for everybody
		return fmt.Errorf("writing the page of benchmarks: %w", err)
	}
	return nil
}

// compose returns a page with sections put in.
func compose(before string, sections []Section) string {
	all := split(before)
	for _, section := range sections {
		sameTitle := func(other Section) bool { return other.Title == section.Title }
		if at := slices.IndexFunc(all, sameTitle); at >= 0 {
			all[at] = section
			continue
		}
		all = append(all, section)
	}
	slices.SortStableFunc(all, func(x, y Section) int { return rank(x.Title) - rank(y.Title) })
	var out strings.Builder
	out.WriteString(head)
	for _, section := range all {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", section.Title, strings.TrimSpace(section.Text))
	}
	return out.String()
}

// split returns the sections of a page.
func split(page string) []Section {
	parts := strings.Split("\n"+page, "\n## ")
	sections := make([]Section, 0, len(parts))
	for _, part := range parts[1:] {
		title, text, _ := strings.Cut(part, "\n")
		sections = append(sections, Section{Title: strings.TrimSpace(title), Text: strings.TrimSpace(text)})
	}
	return sections
}

func rank(title string) int {
	if at := slices.Index(order, title); at >= 0 {
		return at
	}
	return len(order)
}
