package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// result is what a command left behind.
type result struct {
	code     int
	out, err string
}

func runCommand(t *testing.T, arguments ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), arguments, &out, &errOut)
	return result{code: code, out: out.String(), err: errOut.String()}
}

// repository returns the absolute path of something in the repository.
func repository(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryCommandIsDescribedWithAnExample(t *testing.T) {
	var visit func(command *cobra.Command)
	visit = func(command *cobra.Command) {
		t.Run(command.CommandPath(), func(t *testing.T) {
			if command.Short == "" || !strings.Contains(command.Example, "kubectl machine") {
				t.Errorf("it has the description %q and the example %q; want both", command.Short, command.Example)
			}
			help := runCommand(t, append(strings.Fields(command.CommandPath())[2:], "--help")...)
			if help.code != 0 || !strings.Contains(help.out, command.Example) {
				t.Errorf("its help ends with %d and does not show the example:\n%s%s", help.code, help.out, help.err)
			}
		})
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(newRoot())
}

func TestCommandLine(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		wantCode  int
		wantOut   string
		wantErr   string
	}{
		"the version":                             {arguments: []string{"version", "--client"}, wantOut: "Client Version: " + version + "\n"},
		"the version in JSON":                     {arguments: []string{"version", "--client", "-o", "json"}, wantOut: "{\n  \"clientVersion\": \"" + version + "\"\n}\n"},
		"the version in YAML":                     {arguments: []string{"version", "--client", "-o", "yaml"}, wantOut: "clientVersion: " + version + "\n"},
		"the version in a form that is not known": {arguments: []string{"version", "-o", "wide"}, wantCode: 1, wantErr: `the output format "wide" is not known; write -o json or -o yaml`},
		"the version of a cluster that is not there": {
			arguments: []string{"version", "--server", "https://127.0.0.1:1", "--request-timeout", "2s"}, wantCode: 1, wantOut: "Client Version: " + version + "\n",
			wantErr: "; --client prints the plugin's version only\n",
		},
		"a completion script":                      {arguments: []string{"completion", "bash"}, wantOut: "kubectl-machine"},
		"words that complete a command":            {arguments: []string{"__complete", "module", ""}, wantOut: "check\tCheck provider modules"},
		"a completion for no shell":                {arguments: []string{"completion", "cmd"}, wantCode: 1, wantErr: `error: there is no completion for "cmd"; name one of bash`},
		"a command that is not there":              {arguments: []string{"moduel"}, wantCode: 1, wantErr: `error: unknown command "moduel" for "kubectl machine"`},
		"a command of a group that is not there":   {arguments: []string{"module", "chekc"}, wantCode: 1, wantErr: `"chekc"`},
		"a flag that is not there":                 {arguments: []string{"module", "new", "--title", "x"}, wantCode: 1, wantErr: "error: unknown flag: --title; 'kubectl machine module new --help' lists the flags"},
		"a new module without a name":              {arguments: []string{"module", "new"}, wantCode: 1, wantErr: "error: accepts 1 arg(s), received 0"},
		"a check of nothing":                       {arguments: []string{"module", "check"}, wantCode: 1, wantErr: "error: requires at least 1 arg(s)"},
		"a check of a folder that is not there":    {arguments: []string{"module", "check", "nowhere"}, wantCode: 1, wantErr: "error: looking for modules in nowhere"},
		"a check in a form that is not known":      {arguments: []string{"module", "check", ".", "-o", "yaml"}, wantCode: 1, wantErr: `the output format "yaml" is not known; write -o json`},
		"a check with an engine and without one":   {arguments: []string{"module", "check", ".", "--no-engine", "--engine-path", "x"}, wantCode: 1, wantErr: "contradict each other"},
		"a check with an engine that is not there": {arguments: []string{"module", "check", "..", "--engine-path", "nowhere"}, wantCode: 1, wantErr: "finding the engine at"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := runCommand(t, tc.arguments...)
			if got.code != tc.wantCode || !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) {
				t.Errorf("it ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", got.code, tc.wantCode, got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
}
