// Package manual keeps the flag tables of docs/reference/flags.md in sync with the programs.
package manual

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the rows of docs/reference/flags.md")

var flagRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|.*\\|$")

// ListsEveryFlag fails the test unless the program's section of docs/reference/flags.md has one row for each flag, as
// in --help. With -update it rewrites the rows. Rows of logging flags, which another project owns, are written by hand.
func ListsEveryFlag(t *testing.T, root string, flags *flag.FlagSet) {
	t.Helper()
	page := filepath.Join(root, "docs", "reference", "flags.md")
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	heading := "\n## " + flags.Name() + "\n"
	before, rest, _ := strings.Cut(string(content), heading)
	section, after, more := strings.Cut(rest, "\n## ")
	if more {
		after = "\n## " + after
	}
	current, problems := rewrite(section, flags)
	for _, problem := range problems {
		t.Errorf("flags.md, %s: %s", flags.Name(), problem)
	}
	if current == section {
		return
	}
	if !*update {
		t.Errorf("flags.md and %s --help differ; run make generate", flags.Name())
		return
	}
	if err := os.WriteFile(page, []byte(before+heading+current+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rewrite returns the section with the correct rows, and a list of missing and superfluous rows.
func rewrite(section string, flags *flag.FlagSet) (current string, problems []string) {
	listed := map[string]bool{}
	current = flagRow.ReplaceAllStringFunc(section, func(row string) string {
		name := flagRow.FindStringSubmatch(row)[1]
		f := flags.Lookup(name)
		switch listed[name] = true; {
		case f == nil:
			problems = append(problems, fmt.Sprintf("there is no flag --%s; remove its row", name))
			return row
		case strings.HasPrefix(name, "zap-"):
			return row
		}
		return rowFor(f)
	})
	flags.VisitAll(func(f *flag.Flag) {
		if !listed[f.Name] {
			problems = append(problems, "add the row\n"+rowFor(f))
		}
	})
	return current, problems
}

func rowFor(f *flag.Flag) string {
	standard := f.DefValue
	if standard != "" {
		standard = "`" + standard + "`"
	}
	return fmt.Sprintf("| `--%s` | %s | %s |", f.Name, standard, f.Usage)
}
