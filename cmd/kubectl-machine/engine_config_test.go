package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAConfigurationThatIsMissingIsNamed(t *testing.T) {
	t.Setenv("TF_CLI_CONFIG_FILE", filepath.Join(t.TempDir(), "tofurc"))
	for _, arguments := range [][]string{
		{"module", "check", newFolder(t, acme)}, {"plan", "-f", manifestOf(t, "1"), "--cache-dir", t.TempDir()},
	} {
		got := runCommand(t, append(arguments, realEngine(t)[:2]...)...)
		const want = "error: TF_CLI_CONFIG_FILE names a file that cannot be read: stat "
		if got.code != 1 || !strings.HasPrefix(got.err, want) {
			t.Errorf("%v ends with %d and %q; want %q", arguments, got.code, got.err, want)
		}
	}
}
