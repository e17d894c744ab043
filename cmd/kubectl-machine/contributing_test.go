package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// fencedBlock matches a block of the page: its language, the file that it is the content of, and its lines.
var fencedBlock = regexp.MustCompile("(?m)^```(\\w+)(?: (\\S+))?\n((?s:.*?))^```$")

// TestContributingAProviderWordByWord follows docs/contributing-a-provider.md as a contributor does: it writes the files and runs the
// commands in their order, in a folder that has the binaries and nothing else, with an API server. Blocks of the language console are left
// to people: they build the binaries, and run a cluster.
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
	for name, target := range map[string]string{"tofu": flags[1], "mirror": flags[3], "kubectl": repository(t, "bin", "kubectl")} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("REGISTRY", newRegistry(t)+"/team") // the page leaves it to its reader
	w := newWorld(t)
	t.Setenv("KUBECONFIG", w.kubeconfig)
	do(t, dir, filepath.Join(bin, "kubectl"), "create", "-f", repository(t, "install", "kubernetes", "namespace.yaml"))
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
			if out := do(t, dir, "bash", "-euo", "pipefail", "-c", content); strings.Contains(out, "; passed: ") {
				last = out
			}
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
		t.Errorf("the last check prints %q; want that of a whole module, from a registry and from a file", last)
	}
	expectUse(t, w, dir)
}

// expectUse checks what the page leaves in the cluster: the setting of the operator, and a MachineSet.
func expectUse(t *testing.T, w *world, dir string) {
	t.Helper()
	reference, err := os.ReadFile(filepath.Join(dir, "reference.txt"))
	if err != nil {
		t.Fatal(err)
	}
	settings, set := &corev1.ConfigMap{}, &machinev1beta1.MachineSet{}
	if err := errors.Join(
		w.Client.Get(t.Context(), client.ObjectKey{Namespace: operands.Namespace, Name: "machine-api-operator-config"}, settings),
		w.Client.Get(t.Context(), client.ObjectKey{Namespace: operands.Namespace, Name: "virtual"}, set),
	); err != nil {
		t.Fatal(err)
	}
	if got, want := settings.Data["arguments"], "--module-source="+strings.TrimSpace(string(reference)); got != want {
		t.Errorf("the manager would get %q; want %q", got, want)
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
