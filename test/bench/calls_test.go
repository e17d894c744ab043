//go:build bench

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// callLogs is a folder with programs that note what they are called with and become the engines' CLIs. That takes a millisecond.
type callLogs struct{ dir string }

func newCallLogs(t *testing.T, l *lab.Lab) callLogs {
	t.Helper()
	logs := callLogs{dir: t.TempDir()}
	// The hosts of programs' languages lie beside Pulumi.
	hosts, err := filepath.Glob(l.Path("bin", "pulumi-language-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		if err := os.Symlink(host, filepath.Join(logs.dir, filepath.Base(host))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range contenders {
		script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$*\" >>'%s'\nexec '%s' \"$@\"\n", logs.file(c.cli), l.Path("bin", c.cli))
		if err := os.WriteFile(logs.program(c.cli), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	return logs
}

func (l callLogs) program(cli string) string { return filepath.Join(l.dir, cli) }

func (l callLogs) file(cli string) string { return filepath.Join(l.dir, cli+".calls") }

func (l callLogs) clear(t *testing.T) {
	t.Helper()
	for _, c := range contenders {
		if err := os.RemoveAll(l.file(c.cli)); err != nil {
			t.Fatal(err)
		}
	}
}

// calls returns how often each CLI was called, by the command.
func (l callLogs) calls(t *testing.T) map[string]map[string]int {
	t.Helper()
	found := map[string]map[string]int{}
	for _, c := range contenders {
		raw, err := os.ReadFile(l.file(c.cli))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found[c.cli] = map[string]int{}
		for line := range strings.Lines(string(raw)) {
			found[c.cli][commandOf(line)]++
		}
	}
	return found
}

// commandOf returns the first argument that is no flag.
func commandOf(line string) string {
	for argument := range strings.FieldsSeq(line) {
		if !strings.HasPrefix(argument, "-") {
			return argument
		}
	}
	return line
}

// series adds up the samples of a series that have labels.
func series(metrics, name string, labels map[string]string) float64 {
	var sum float64
	for line := range strings.Lines(metrics) {
		described, ok := strings.CutPrefix(line, name+"{")
		if !ok {
			continue
		}
		found := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(described, -1) {
			found[pair[1]] = pair[2]
		}
		matches := true
		for key, value := range labels {
			matches = matches && found[key] == value
		}
		fields := strings.Fields(line)
		if value, err := strconv.ParseFloat(fields[len(fields)-1], 64); err == nil && matches {
			sum += value
		}
	}
	return sum
}
