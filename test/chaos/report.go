package chaos

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Tally adds up rounds.
type Tally struct {
	Rounds, Passed, Remade int
	Took                   time.Duration
	Injected, Missed       map[Kind]int
	Harms                  map[Harm]int
	// versions counts rounds by the manager's version.
	versions map[string]int
}

func (t *Tally) Add(o Outcome) {
	if t.Injected == nil {
		t.Injected, t.Missed, t.Harms = map[Kind]int{}, map[Kind]int{}, map[Harm]int{}
	}
	t.Rounds++
	t.Took += o.Took
	t.Remade += o.Remade
	if len(o.Violations) == 0 {
		t.Passed++
	}
	for _, kind := range o.Injected {
		t.Injected[kind]++
	}
	for _, kind := range o.Missed {
		t.Missed[kind]++
	}
	for _, v := range o.Violations {
		t.Harms[v.Harm]++
	}
}

// played counts a round for a version.
func (t *Tally) played(version string) {
	if t.versions == nil {
		t.versions = map[string]int{}
	}
	t.versions[version]++
}

// Line formats a round's progress.
func Line(o Outcome) string {
	findings := "ok"
	if len(o.Violations) > 0 {
		findings = fmt.Sprintf("FAILED (%d)", len(o.Violations))
	}
	var sets []string
	for _, set := range o.Plan.Sets {
		text := fmt.Sprintf("%d %s", set.Replicas, set.On)
		if set.Pool {
			text += fmt.Sprintf(" (+%d -%d)", set.Surge, set.Unavailable)
		}
		sets = append(sets, text)
	}
	line := fmt.Sprintf("seed %-4d %5.1fs  %-11s %s: %s", o.Plan.Seed, o.Took.Seconds(), findings,
		strings.Join(sets, " + "), list(o.Injected))
	if len(o.Missed) > 0 {
		line += "; not met: " + list(o.Missed)
	}
	return line
}

func list(kinds []Kind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	if len(names) == 0 {
		return "no fault"
	}
	return strings.Join(names, ", ")
}

// Table formats the tally in Markdown.
func (t *Tally) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds, %d passed, %.0f s each on average; %d faults.\n", t.Rounds, t.Passed,
		t.Took.Seconds()/float64(max(t.Rounds, 1)), sum(t.Injected))
	for _, version := range slices.Sorted(maps.Keys(t.versions)) {
		fmt.Fprintf(&b, "Version %s of the manager: %d.\n", version, t.versions[version])
	}
	fmt.Fprintf(&b, "\n| harm | found |\n|---|---|\n")
	for _, harm := range []Harm{Lost, Doubled, leftOver, Stuck, Failed, Leaked, Beyond} {
		fmt.Fprintf(&b, "| %s | %d |\n", harm, t.Harms[harm])
	}
	fmt.Fprintf(&b, "\n| fault | injected | came too late or early |\n|---|---|---|\n")
	sorted := slices.Clone(kinds)
	slices.Sort(sorted)
	for _, kind := range sorted {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", kind, t.Injected[kind], t.Missed[kind])
	}
	return b.String()
}

func sum[K comparable](counts map[K]int) (total int) {
	for _, count := range counts {
		total += count
	}
	return total
}

const (
	tableBegins = "<!-- make chaos: begin -->"
	tableEnds   = "<!-- make chaos: end -->"
)

// WriteTable replaces the table between a page's markers.
func WriteTable(path, table string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	before, rest, begins := strings.Cut(string(content), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("writing the table: %s lacks %q and %q, in this order", path, tableBegins, tableEnds)
	}
	return os.WriteFile(path, []byte(before+tableBegins+"\n\n"+table+"\n"+tableEnds+after), 0o644)
}
