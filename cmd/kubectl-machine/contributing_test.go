package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// fencedBlock matches a block of the page: its language, the file that it is the content of, and its lines.
var fencedBlock = regexp.MustCompile("(?m)^```(\\w+)(?: (\\S+))?\n((?s:.*?))^```$")

// TestContributingAProviderWordByWord follows docs/contributing-a-provider.md as a contributor does: it writes the files and runs the
// commands in their order, in a folder that has the binaries and nothing else. Blocks of the language console are left to people: they
// build the binaries, and run a cluster.
func TestContributingAProviderWordByWord(t *testing.T) {
	long.Test(t)
	page, err := os.ReadFile(repository(t, "docs", "contributing-a-provider.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	flags := realEngine(t)
	for name, target := range map[string]string{"tofu": flags[1], "mirror": flags[3]} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("REGISTRY", newRegistry(t)+"/team") // the page leaves it to its reader
	placePlugin(t, bin)
	var files, commands int
	var last string
	for _, block := range fencedBlock.FindAllStringSubmatch(string(page), -1) {
		language, file, content := block[1], block[2], block[3]
		switch {
		case file != "":
			files++
			path := filepath.Join(dir, filepath.FromSlash(file))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, path, content)
		case language == "sh":
			commands++
			last = do(t, dir, "bash", "-euo", "pipefail", "-c", content)
		case language != "console":
			t.Errorf("a block of the language %q names no file; name one, or call it console", language)
		}
	}
	if files < 8 || commands < 7 {
		t.Errorf("the page has %d files and %d commands; have the blocks lost their form?", files, commands)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(last, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "warning: ") && strings.Contains(line, "has no checksums of ") // they need a network
	})
	const byEngine = ", fmt, init, validate, destroy, test, example"
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "kubevirt@sha256:") || !strings.HasSuffix(lines[0], "; passed: contract"+byEngine+"\n") ||
		strings.Replace(lines[0], byEngine, "", 1) != lines[1] {
		t.Errorf("the last commands print %q; want the check of a whole module, from a registry and from a file", last)
	}
}

// do runs a command and returns what it prints.
func do(t *testing.T, dir, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return string(output)
}
