package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/module/scaffold"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// newRegistry starts a registry and returns its host.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestWhatIsShippedPassesTheCheck(t *testing.T) {
	host := newRegistry(t)
	dir := newFolder(t, acme)
	source := filepath.Join(dir, "acme")
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"packed":                      {[]string{"pack", source}, "file://" + filepath.Join(dir, "acme.tar.gz") + "@sha256:"},
		"packed into a file":          {[]string{"pack", source, "-o", "v1.tar.gz"}, "file://" + filepath.Join(dir, "v1.tar.gz") + "@sha256:"},
		"packed from within":          {[]string{"pack", "acme/."}, "file://" + filepath.Join(dir, "acme.tar.gz") + "@sha256:"},
		"pushed":                      {[]string{"push", source, "oci://" + host + "/team/acme:v1"}, "oci://" + host + "/team/acme:v1@sha256:"},
		"pushed to a name of its own": {[]string{"push", source, "oci://" + host + "/other:v1"}, "oci://" + host + "/other:v1@sha256:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(dir)
			got := runCommand(t, append([]string{"module"}, tc.arguments...)...)
			if got.code != 0 || !strings.HasPrefix(got.out, tc.want) || strings.Count(got.out, "\n") != 1 || !strings.Contains(got.err, "ed acme@sha256:") {
				t.Fatalf("it ends with %d, %q and %q; want the reference alone, %q", got.code, got.err, got.out, tc.want)
			}
			again := runCommand(t, append([]string{"module"}, tc.arguments...)...)
			if diff := cmp.Diff(got, again, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("the second time it differs (-first +second):\n%s", diff)
			}
			ofFolder := runCommand(t, "module", "check", source, "--no-engine")
			checked := runCommand(t, "module", "check", strings.TrimSpace(got.out), "--no-engine")
			if checked.code != 0 || checked.out != ofFolder.out {
				t.Errorf("its check ends with %d, %q and\n%s\nwant that of the folder,\n%s", checked.code, checked.err, checked.out, ofFolder.out)
			}
		})
	}
}

func TestTheEngineTestsWhatWasPushed(t *testing.T) {
	long.Test(t)
	host := newRegistry(t)
	pushed := runCommand(t, "module", "push", filepath.Join(newFolder(t, acme), "acme"), "oci://"+host+"/acme:v1")
	got := runCommand(t, append([]string{"module", "check", strings.TrimSpace(pushed.out)}, realEngine(t)...)...)
	if got.code != 0 || !strings.HasSuffix(got.out, "; passed: contract, fmt, init, validate, destroy, test, example\n") {
		t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
	broken := newFolder(t, acme, [3]string{"main.tf", "  input = {", "  inptu = {}\n  input = {"})
	pushed = runCommand(t, "module", "push", filepath.Join(broken, "acme"), "oci://"+host+"/acme:v2")
	reference := strings.TrimSpace(pushed.out)
	got = runCommand(t, append([]string{"module", "check", reference}, realEngine(t)...)...)
	if got.code != 1 || !strings.Contains(got.out, reference+"/main.tf:18: fails: Unsupported argument") {
		t.Errorf("it ends with %d, %q and\n%s\nwant the breach with its place", got.code, got.err, got.out)
	}
}

func TestShippingRefuses(t *testing.T) {
	good := filepath.Join(newFolder(t, acme), "acme")
	renamed := filepath.Join(newFolder(t, scaffold.Options{Name: "acme"}, [3]string{"module.yaml", "name: acme", "name: acne"}), "acme")
	broken := filepath.Join(newFolder(t, acme, [3]string{"README.md", "", ""}), "acme")
	linked := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(good, linked); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"an archive in the module":               {[]string{"pack", good, "-o", filepath.Join(good, "acme.tar.gz")}, "a part of the module from then on; name another place with -o"},
		"an archive in a folder of the module":   {[]string{"pack", good, "-o", filepath.Join(good, "tests", "x.tar.gz")}, "a part of the module from then on"},
		"an archive in the module, by a link":    {[]string{"pack", good, "-o", filepath.Join(linked, "x.tar.gz")}, "a part of the module from then on"},
		"an archive in a folder that is missing": {[]string{"pack", good, "-o", filepath.Join(t.TempDir(), "nowhere", "x.tar.gz")}, "finding the folder of the archive: "},
		"an archive that is a folder":            {[]string{"pack", good, "-o", t.TempDir()}, "is there, and is not a regular file"},
		"a module that breaks the contract":      {[]string{"pack", broken}, "README.md: is missing; write one"},
		"to push one that breaks the contract":   {[]string{"push", broken, "oci://localhost:1/acme:v1"}, "README.md: is missing; write one"},
		"a module by another name":               {[]string{"pack", renamed}, `metadata.name is "acne" in the folder acme; use the folder's name`},
		"a folder that is not there":             {[]string{"pack", "nowhere"}, "packing nowhere: "},
		"to push to what is no registry":         {[]string{"push", good, "acme:v1"}, "not a reference to a module; use oci://registry/repository"},
		"to push without a tag":                  {[]string{"push", good, "oci://localhost:1/acme"}, "has no tag; use oci://registry/repository:tag"},
		"to push to a registry that is away":     {[]string{"push", good, "oci://localhost:1/acme:v1", "--timeout", "1ms"}, "pushing the module to oci://localhost:1/acme:v1: "},
		"to check what has no digest":            {[]string{"check", "oci://localhost:1/acme:v1"}, "oci://localhost:1/acme:v1 has no digest; add @sha256:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			got := runCommand(t, append([]string{"module"}, tc.arguments...)...)
			if got.code != 1 || !strings.Contains(got.err, tc.want) || got.out != "" {
				t.Errorf("it ends with %d, %q and %q; want %q", got.code, got.err, got.out, tc.want)
			}
			for _, dir := range []string{".", good} {
				if left, _ := filepath.Glob(filepath.Join(dir, "*.gz")); len(left) > 0 {
					t.Errorf("it leaves %q", left)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, ".module-*")); len(left) > 0 {
					t.Errorf("it leaves %q", left)
				}
			}
		})
	}
}

func TestABreachInAnArchiveIsReportedWithFileAndLine(t *testing.T) {
	dir := newFolder(t, acme)
	t.Chdir(dir)
	packed := runCommand(t, "module", "pack", "acme")
	good := strings.TrimSpace(packed.out)
	// The same module twice: one by its folder, and one by its archive.
	got := runCommand(t, "module", "check", "acme", good, "--no-engine")
	if got.code != 1 || !strings.Contains(got.out, `two modules are called "acme"`) {
		t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
	if err := os.WriteFile("acme.tar.gz", []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runCommand(t, "module", "check", good, "--no-engine"); got.code != 1 || !strings.Contains(got.err, "which is not that of the reference") {
		t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
}
