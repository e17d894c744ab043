package verify

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// measured is a Makefile whose demo stays until it is interrupted, as the real one does.
const measured = `
demo:
	@echo "[1/2] etcd: built in 12 s; 0:12 since the start, about 1 min left"
	@echo "[2/2] provider-kubectl: built in 3 s; 0:15 since the start, all are built"
	@mkdir -p "$$GOMODCACHE" && env | sort >"$(SEEN)/environment"
	@test ! -e "$(SEEN)/broken" || { echo "no compiler"; false; }
	@echo "Where to look:"
	@sleep 300
demo-down:
	@touch "$(SEEN)/down"
test:
	@mkdir -p "$$GOMODCACHE"
	@test ! -e "$(SEEN)/broken" || { echo "a test has failed"; false; }
	@echo "[1/1] vcsim: built in 7 s; 0:07 since the start, all are built"
`

// TestTheFirstStartIsMeasured runs hack/measure-first.sh in a repository of its own.
func TestTheFirstStartIsMeasured(t *testing.T) {
	t.Parallel()
	repository, seen, scratch := t.TempDir(), t.TempDir(), t.TempDir()
	script, err := os.ReadFile(filepath.Join(root, "hack", "measure-first.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"hack/measure-first.sh": string(script), "Makefile": "SEEN := " + seen + measured} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(repository, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repository, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "all"}} {
		command := exec.Command("git", arguments...)
		command.Dir = repository
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, output)
		}
	}
	measure := func(targets ...string) (string, error) {
		command := exec.CommandContext(t.Context(), filepath.Join(repository, "hack", "measure-first.sh"), targets...)
		command.Env = append(os.Environ(), "TMPDIR="+scratch, "TOFU=/usr/bin/tofu", "KUBEBUILDER_ASSETS=/usr/bin", "MAKEFLAGS=")
		command.WaitDelay = time.Second
		output, err := command.CombinedOutput()
		return string(output), err
	}
	left := func() int {
		entries, err := os.ReadDir(scratch)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}

	output, err := measure()
	want := regexp.MustCompile(`(?s)^go version .*, \d+ processors, commit [0-9a-f]+
make demo: 0 min \d\d s, with [^\n]* of Go modules and [^\n]* in all
  etcd\|12
  provider-kubectl\|3
make test: 0 min \d\d s, with [^\n]* of Go modules and [^\n]* in all
  vcsim\|7
$`)
	if err != nil || !want.MatchString(output) {
		t.Errorf("got %v\n%s", err, output)
	}
	if _, err := os.Stat(filepath.Join(seen, "down")); err != nil {
		t.Errorf("the demo's cluster is left running: %v", err)
	}
	environment, err := os.ReadFile(filepath.Join(seen, "environment"))
	if err != nil {
		t.Fatal(err)
	}
	var set []string
	for line := range strings.Lines(string(environment)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "GOCACHE", "GOMODCACHE", "TMPDIR":
			set = append(set, fmt.Sprintf("%s in its own folder: %t", name, strings.HasPrefix(value, scratch+"/")))
		case "KUBEBUILDER_ASSETS", "TOFU", "TOOLS_FROM_PATH":
			set = append(set, name+"="+value)
		}
	}
	if diff := cmp.Diff([]string{"GOCACHE in its own folder: true", "GOMODCACHE in its own folder: true", "TMPDIR in its own folder: true", "TOOLS_FROM_PATH=no"}, set); diff != "" {
		t.Errorf("the environment (-want +got):\n%s", diff)
	}
	if left() != 0 {
		t.Error("what was measured is left behind")
	}

	if output, err := measure("demo", "everything"); err == nil || !strings.Contains(output, "'everything' is not measured; name demo or test") || left() != 0 {
		t.Errorf("got %v\n%s", err, output)
	}
	if err := os.WriteFile(filepath.Join(seen, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for at, reason := range []string{"make demo has ended before its Machines ran: ", "make test has failed: "} {
		output, err := measure([]string{"demo", "test"}[at])
		if err == nil || !strings.Contains(output, reason) || !strings.Contains(output, "everything is kept in "+scratch) || left() != at+1 {
			t.Errorf("want %q and a folder, got %v\n%s", reason, err, output)
		}
	}
}
