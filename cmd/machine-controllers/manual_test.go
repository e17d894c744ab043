package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// The manual describes a flag as --help does. The flags for logging are another project's; their rows are in the manual's words.
func TestTheManualListsEveryFlag(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	page, err := os.ReadFile("../../docs/manager.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(string(page))
	newFlags(&options{}, &zap.Options{}).VisitAll(func(f *flag.Flag) {
		row, ok := rows[f.Name]
		delete(rows, f.Name)
		switch want := rowFor(f); {
		case !ok:
			t.Errorf("docs/manager.md lacks --%s; add the row\n%s", f.Name, want)
		case !strings.HasPrefix(f.Name, "zap-") && row != want:
			t.Errorf("docs/manager.md and --help differ about --%s; the page has\n%s\nand should have\n%s", f.Name, row, want)
		}
	})
	for name, row := range rows {
		t.Errorf("docs/manager.md has a row for --%s, which is no flag; remove it:\n%s", name, row)
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

func TestRowsOf(t *testing.T) {
	rows := rowsOf("| flag | default | what |\n| `--one-two` | `3` | counts. |\nsome `--other`\n| `--three` |  | is empty. |\n")
	if len(rows) != 2 || rows["one-two"] != "| `--one-two` | `3` | counts. |" || rows["three"] == "" {
		t.Errorf("rows are %q", rows)
	}
}
