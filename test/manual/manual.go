// Package manual compares the pages that describe programs with their flags.
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

// ListsEveryFlag fails the test unless a page has one row for each flag, that describes it as --help does. The flags for logging are another
// project's; their rows are in the page's words.
func ListsEveryFlag(t *testing.T, page string, flags *flag.FlagSet) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	page = "docs/" + filepath.Base(page)
	rows := rowsOf(string(content))
	flags.VisitAll(func(f *flag.Flag) {
		row, ok := rows[f.Name]
		delete(rows, f.Name)
		switch want := rowFor(f); {
		case !ok:
			t.Errorf("%s lacks --%s; add the row\n%s", page, f.Name, want)
		case !strings.HasPrefix(f.Name, "zap-") && row != want:
			t.Errorf("%s and --help differ about --%s; the page has\n%s\nand should have\n%s", page, f.Name, row, want)
		}
	})
	for name, row := range rows {
		t.Errorf("%s has a row for --%s, which is no flag; remove it:\n%s", page, name, row)
	}
}

var flagRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|.*\\|$")

func rowsOf(page string) map[string]string {
	rows := map[string]string{}
	for _, match := range flagRow.FindAllStringSubmatch(page, -1) {
		rows[match[1]] = match[0]
	}
	return rows
}

func rowFor(f *flag.Flag) string {
	standard := f.DefValue
	if standard != "" {
		standard = "`" + standard + "`"
	}
	return fmt.Sprintf("| `--%s` | %s | %s |", f.Name, standard, f.Usage)
}
