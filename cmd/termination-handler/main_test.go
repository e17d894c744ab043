package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestBadFlagsAreNamed(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for arguments, want := range map[string]string{
		"":                          "--node-name",
		"--node-name=n extra":       `"extra"`,
		"--node-name=n --cloud=gce": "aws, azure or gcp",
		"--node-name=n --poll-interval-seconds=0":                                        "must be at least 1",
		"--node-name=n --poll-interval-seconds=x":                                        "poll-interval-seconds",
		"--node-name=n --no-such-flag":                                                   "no-such-flag",
		"--node-name=n --cloud=aws":                                                      "KUBECONFIG",
		"--node-name=n --kubeconfig=none":                                                "none",
		"--node-name=n --metadata-url=ftp://x --cloud=aws --kubeconfig=" + kubeconfig(t): "--metadata-url",
	} {
		if err := start(t.Context(), strings.Fields(arguments)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v; want one that names %s", arguments, err, want)
		}
	}
}

func TestFlagsOfTheMachineAPIAreAccepted(t *testing.T) {
	arguments := "--logtostderr=true --v=3 --node-name=n --namespace=openshift-machine-api --poll-interval-seconds=5 --version"
	if err := start(t.Context(), strings.Fields(arguments)); err != nil {
		t.Error(err)
	}
}

// kubeconfig returns a file that can be read, of an API server that is not there.
func kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n" +
		"users: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

var flagRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|.*\\|$")

// The page describes a flag as --help does. Those for logging are in docs/reference/flags.md.
func TestThePageListsEveryFlag(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	page, err := os.ReadFile("../../docs/spot.md")
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{}
	newFlags(&options{}, &zap.Options{}).VisitAll(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "zap-") {
			return
		}
		standard := f.DefValue
		if standard != "" {
			standard = "`" + standard + "`"
		}
		wanted[f.Name] = fmt.Sprintf("| `--%s` | %s | %s |", f.Name, standard, f.Usage)
	})
	for _, row := range flagRow.FindAllStringSubmatch(string(page), -1) {
		if wanted[row[1]] != row[0] {
			t.Errorf("docs/spot.md has the row\n%s\nand --help says\n%s", row[0], wanted[row[1]])
		}
		delete(wanted, row[1])
	}
	for _, row := range wanted {
		t.Errorf("docs/spot.md lacks the row\n%s", row)
	}
}
