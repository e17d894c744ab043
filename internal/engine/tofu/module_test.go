package tofu

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

func TestLockFile(t *testing.T) {
	const content = `# committed
provider "registry.opentofu.org/a/b" {
  version     = "1.2.3"
  constraints = "~> 1.2"
  hashes = [
    "h1:x",
    "zh:y",
  ]
}
provider "example.org/c/d" {
  version = "2.0.0"
}
`
	parsed, err := parseLockFile([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	b := selection{Address: "registry.opentofu.org/a/b", Version: "1.2.3", Constraints: "~> 1.2", Hashes: []string{"h1:x", "zh:y"}}
	d := selection{Address: "example.org/c/d", Version: "2.0.0"}
	if diff := cmp.Diff(selections{b.Address: b, d.Address: d}, parsed); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
	again, err := parseLockFile(parsed.encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed, again); diff != "" {
		t.Errorf("written and parsed again (-want +got):\n%s", diff)
	}
	of := b
	of.Address = "registry.terraform.io/a/b"
	if diff := cmp.Diff(selections{b.Address: b, d.Address: d, of.Address: of}, parsed.forEngine(Terraform)); diff != "" {
		t.Errorf("for Terraform (-want +got):\n%s", diff)
	}
	built := selection{Address: "registry.opentofu.org/hashicorp/b", Version: "1.2.3", Hashes: []string{"h1:x"}}
	got := (selections{built.Address: built}).forEngine(Terraform)["registry.terraform.io/hashicorp/b"]
	if got.Version != "1.2.3" || got.Hashes != nil {
		t.Errorf("got %+v, want the version without the checksums of the other registry's build", got)
	}
	if diff := cmp.Diff(parsed, parsed.forEngine(OpenTofu)); diff != "" {
		t.Errorf("for OpenTofu (-want +got):\n%s", diff)
	}
	b.Hashes = nil
	if diff := cmp.Diff(selections{b.Address: b, d.Address: d}, parsed.withoutHashes()); diff != "" {
		t.Errorf("without hashes (-want +got):\n%s", diff)
	}
}

// TestLockFilesWithPathsAreRefused: addresses and versions become names of folders.
func TestLockFilesWithPathsAreRefused(t *testing.T) {
	const address, fixAddress, fixVersion = "example.org/a/b", "write host/namespace/type", "write an exact version"
	cases := map[string]struct{ address, version, want string }{
		"parents":            {"../../../../x/y", "1.0.0", fixAddress},
		"a parent":           {"example.org/../b", "1.0.0", fixAddress},
		"an absolute path":   {"/example.org/a", "1.0.0", fixAddress},
		"no host":            {"a/b", "1.0.0", fixAddress},
		"more parts":         {address + "/c", "1.0.0", fixAddress},
		"an empty part":      {"example.org//b", "1.0.0", fixAddress},
		"a pattern":          {"example.org/*/b", "1.0.0", fixAddress},
		"a backslash":        {`example.org/a/..\\b`, "1.0.0", fixAddress},
		"no version":         {address, "", fixVersion},
		"a parent's version": {address, "..", fixVersion},
		"parents' version":   {address, "1.0.0/../../../x", fixVersion},
		"a constraint":       {address, ">= 1.0.0", fixVersion},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parseLockFile(fmt.Appendf(nil, "provider \"%s\" {\n  version = \"%s\"\n}\n", c.address, c.version))
			expectTexts(t, err, []string{lockFile, c.want})
		})
	}
	for _, good := range []string{"127.0.0.1:8443/acme-1/cloud_2", "xn--bcher-kva.example/a/b", "bücher.example/a/b"} {
		if _, err := parseLockFile(selections{good: {Address: good, Version: "1.0.0-rc.1+build"}}.encode()); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckSelected(t *testing.T) {
	of := func(pairs ...string) selections {
		s := selections{}
		for i := 0; i < len(pairs); i += 2 {
			s[pairs[i]] = selection{Address: pairs[i], Version: pairs[i+1]}
		}
		return s
	}
	cases := map[string]struct {
		committed, selected selections
		want                []string
	}{
		"what is committed":       {committed: of("a", "1", "b", "2"), selected: of("a", "1")},
		"a provider beside it":    {committed: of("a", "1"), selected: of("a", "1", "b", "2"), want: []string{"does not list b", "version 2"}},
		"another version":         {committed: of("a", "1"), selected: of("a", "2"), want: []string{"version 1 of a", "selected 2"}},
		"a module without a file": {committed: of(), selected: of("a", "1"), want: []string{"does not list a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := checkSelected(tc.committed, tc.selected)
			if len(tc.want) > 0 {
				expectTexts(t, err, tc.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// mirrorForTests returns the provider mirror that `make tools` fills, with its providers under the names of both registries.
// Engines follow a link for a platform's folder, not for one above it.
func mirrorForTests(t testing.TB) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "mirror"))
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := filepath.Glob(filepath.Join(source, registryOfOpenTofu, "*", "*", "*", runtime.GOOS+"_"+runtime.GOARCH))
	if err != nil || len(platforms) == 0 {
		t.Fatalf("there is no provider in %s (%v); run 'make tools'", source, err)
	}
	mirror := t.TempDir()
	for _, platform := range platforms {
		name, err := filepath.Rel(filepath.Join(source, registryOfOpenTofu), platform)
		if err != nil {
			t.Fatal(err)
		}
		for _, registry := range []string{registryOfOpenTofu, registryOfTerraform} {
			link := filepath.Join(mirror, registry, name)
			if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(platform, link); err != nil {
				t.Fatal(err)
			}
		}
	}
	return mirror
}

// object is a module with a provider plugin. It can be planned without anything that listens at host.
const object = `
terraform {
  required_providers {
    kubectl = { source = "gavinbunney/kubectl" }
  }
}
provider "kubectl" {
  host             = "https://127.0.0.1:1"
  load_config_file = false
}
variable "name" { type = string }
resource "kubectl_manifest" "this" {
  yaml_body = yamlencode({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = var.name, namespace = "default" } })
}
`

const objectLock = "provider \"registry.opentofu.org/gavinbunney/kubectl\" {\n  version = \"1.19.0\"\n"

func objectModule(lock string) Module {
	content := map[string]string{"main.tf": object}
	if lock != "" {
		content[lockFile] = lock
	}
	return Module{Digest: "object", Files: files(content)}
}

func TestProvidersComeFromTheMirror(t *testing.T) {
	const otherChecksum = "  hashes = [\"h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]\n}\n"
	digest, other := strings.Fields(digestOfKubectl(t))[0], strings.Repeat("0", 64)
	cases := map[string]struct {
		lock     string
		manifest string // the digest that it lists; no manifest where it is empty
		noMirror bool
		want     []string
	}{
		"a lock file that pins a version without checksums": {lock: objectLock + "}\n"},
		"a lock file with another checksum":                 {lock: objectLock + otherChecksum, want: []string{"kubectl", "checksums"}},
		"the same, and a manifest that lists the provider":  {lock: objectLock + otherChecksum, manifest: digest},
		"a manifest that lists another one":                 {lock: objectLock + "}\n", manifest: other, want: []string{"kubectl", digest, other, ".sha256"}},
		"a lock file with a version that the mirror lacks":  {lock: strings.Replace(objectLock, "1.19.0", "1.18.0", 1) + "}\n", want: []string{"1.18.0"}},
		"a module without a lock file":                      {want: []string{lockFile, "kubectl"}},
		"no mirror, and nothing is downloaded":              {lock: objectLock + "}\n", noMirror: true, want: []string{"kubectl"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, func(o *Options) {
				if !tc.noMirror {
					o.ProviderMirror = mirrorForTests(t)
				}
				if tc.manifest != "" {
					writeManifest(t, o.ProviderMirror, tc.manifest)
				}
			})
			err := e.Prepare(t.Context(), objectModule(tc.lock))
			if len(tc.want) > 0 {
				expectTexts(t, err, append(tc.want, string(failure.OpInit)))
				if found := tree(t, e.dir.modules()); len(found) > 0 {
					t.Errorf("a module that failed leaves %v", found)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f := open(t, e, RunSpec{ID: "r", Module: "object", Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`)})
			report := plan(t, f, PlanOptions{})
			if !report.CreatesOnly() || report.Planned.Add != 1 {
				t.Errorf("plan is %+v, want one create", report.Planned)
			}
			if want := kubectlBinary + " " + digest; report.Providers != want {
				t.Errorf("got the providers %q, want %q", report.Providers, want)
			}
		})
	}
}

const kubectlBinary = "terraform-provider-kubectl_v1.19.0"

// digestOfKubectl returns the line of sha256sum for the provider of the tests' mirror.
func digestOfKubectl(t *testing.T) string {
	t.Helper()
	platform := filepath.Join(registryOfOpenTofu, "gavinbunney", "kubectl", "1.19.0", runtime.GOOS+"_"+runtime.GOARCH)
	content, err := os.ReadFile(filepath.Join(mirrorForTests(t), platform, kubectlBinary))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(content), kubectlBinary)
}

// writeManifest writes the manifest of a mirror, which lists its provider with a digest.
func writeManifest(t *testing.T, mirror, digest string) {
	t.Helper()
	if err := os.WriteFile(mirror+".sha256", []byte(digest+"  "+kubectlBinary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChecksumsAreCheckedAtInitAndOnDemand(t *testing.T) {
	const checksums = "hashes"
	for _, each := range []bool{false, true} {
		e := newEngine(t, func(o *Options) {
			o.ProviderMirror = mirrorForTests(t)
			o.VerifyEachRun = each
		})
		prepare(t, e, objectModule(objectLock+"}\n"))
		f := open(t, e, RunSpec{ID: "r", Module: "object", Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`)})
		content, err := os.ReadFile(filepath.Join(f.dir, lockFile))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(content), checksums); got != each {
			t.Errorf("VerifyEachRun %t: the run's lock file has checksums: %t", each, got)
		}
		closeNow(t, f)
	}
}

func TestAProviderThatTheLockFileDoesNotKnowIsRefused(t *testing.T) {
	mirror := t.TempDir()
	// Links are resolved: what is changed below may not be the provider of all other tests.
	platform := filepath.Join(registryOfOpenTofu, "gavinbunney", "kubectl", "1.19.0", runtime.GOOS+"_"+runtime.GOARCH)
	kept, err := filepath.EvalSymlinks(filepath.Join(mirrorForTests(t), platform))
	if err == nil {
		err = os.CopyFS(filepath.Join(mirror, platform), os.DirFS(kept))
	}
	if err != nil {
		t.Fatal(err)
	}
	at := func(o *Options) { o.ProviderMirror, o.VerifyEachRun = mirror, true }
	e := newEngine(t, at)
	prepare(t, e, objectModule(objectLock+"}\n"))
	f := open(t, e, RunSpec{ID: "r", Module: "object", Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`)})
	lock, err := os.ReadFile(filepath.Join(f.dir, lockFile)) // with the checksums of what the mirror has
	if err != nil {
		t.Fatal(err)
	}
	closeNow(t, f)
	initialised := newEngine(t, at)
	if err := initialised.Prepare(t.Context(), objectModule(string(lock))); err != nil {
		t.Fatalf("the provider that the lock file knows: %v", err)
	}
	binaries, err := filepath.Glob(filepath.Join(mirror, "*", "*", "*", "*", "*", "terraform-provider-*"))
	if err != nil || len(binaries) != 1 {
		t.Fatalf("the mirror has %q, %v", binaries, err)
	}
	content, err := os.ReadFile(binaries[0])
	if err == nil {
		err = os.Remove(binaries[0]) // it may be a link
	}
	if err == nil {
		err = os.WriteFile(binaries[0], append(content, 0), 0o700) // it would still run
	}
	if err != nil {
		t.Fatal(err)
	}
	if others, err := os.ReadFile(filepath.Join(kept, filepath.Base(binaries[0]))); err != nil || len(others) != len(content) {
		t.Fatalf("the mirror of all tests was changed: %v", err)
	}
	for _, one := range []*Engine{initialised, newEngine(t, at)} {
		expectTexts(t, one.Prepare(t.Context(), objectModule(string(lock))), []string{"kubectl", "checksums"})
	}
	// Nothing refuses it where neither a lock file nor a manifest does: it is another one, and the report says so.
	prepare(t, e, objectModule(objectLock+"}\n"))
	f = open(t, e, RunSpec{ID: "again", Module: "object", Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`)})
	report := plan(t, f, PlanOptions{})
	if kept := strings.Fields(digestOfKubectl(t))[0]; report.Providers == "" || strings.Contains(report.Providers, kept) {
		t.Errorf("got the providers %q, want those that were exchanged", report.Providers)
	}
}

func TestPrepareOnceAlsoAfterARestart(t *testing.T) {
	dir := shortdir.New(t)
	inDir := func(o *Options) { o.WorkDir = dir }
	e := newEngine(t, inDir)
	m := moduleOf("sha256:instance", instance)
	for range 3 {
		prepare(t, e, m)
	}
	if e.Starts() != 2 { // one asks for the version
		t.Errorf("%d CLI processes were started, want 2", e.Starts())
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// what a predecessor did not finish
	half := filepath.Join(dir, "modules", stagingPrefix+"half")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	e = newEngine(t, inDir)
	prepare(t, e, m)
	if e.Starts() != 0 {
		t.Errorf("%d CLI processes were started after the restart, want none", e.Starts())
	}
	if exists(half) {
		t.Error("a module that was not finished is still there")
	}
}

func TestPrepareAgainWhenTheMirrorWasReplaced(t *testing.T) {
	mirror := mirrorForTests(t)
	e := newEngine(t, func(o *Options) { o.ProviderMirror = mirror })
	m := objectModule(objectLock + "}\n")
	prepare(t, e, m)
	if err := os.RemoveAll(mirror); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(mirror, 0o700); err != nil {
		t.Fatal(err)
	}
	expectTexts(t, e.Prepare(t.Context(), m), []string{"kubectl"})
	if err := os.CopyFS(mirror, os.DirFS(mirrorForTests(t))); err != nil {
		t.Fatal(err)
	}
	prepare(t, e, m)
}

func TestAProviderThatIsPutIntoTheMirrorLaterIsNoticed(t *testing.T) {
	mirror := filepath.Join(t.TempDir(), "mirror")
	if err := os.Mkdir(mirror, 0o700); err != nil {
		t.Fatal(err)
	}
	writeManifest(t, mirror, strings.Repeat("0", 64))
	e := newEngine(t, func(o *Options) { o.ProviderMirror = mirror })
	m := objectModule(objectLock + "}\n")
	expectTexts(t, e.Prepare(t.Context(), m), []string{"kubectl"})
	before := e.Starts()
	expectTexts(t, e.Prepare(t.Context(), m), []string{"kubectl"})
	if e.Starts() != before {
		t.Error("an engine was started although nothing has changed")
	}
	platform := filepath.Join(registryOfOpenTofu, "gavinbunney", "kubectl", "1.19.0", runtime.GOOS+"_"+runtime.GOARCH)
	binary, err := os.ReadFile(filepath.Join(mirrorForTests(t), platform, kubectlBinary)) // no link: what links lead to may be read that are there at the start
	if err == nil {
		err = os.MkdirAll(filepath.Join(mirror, platform), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(mirror, platform, kubectlBinary), binary, 0o700) //nolint:gosec // a program
	}
	if err != nil {
		t.Fatal(err)
	}
	expectTexts(t, e.Prepare(t.Context(), m), []string{"kubectl", "does not match"})
	writeManifest(t, mirror, strings.Fields(digestOfKubectl(t))[0])
	prepare(t, e, m)
}

func TestProvidersOfAMergedMirrorAreUsed(t *testing.T) {
	mirror := filepath.Join(t.TempDir(), "mirror")
	if err := provider.Merge(mirrorForTests(t), mirror, true); err != nil {
		t.Fatal(err)
	}
	prepare(t, newEngine(t, func(o *Options) { o.ProviderMirror = mirror }), objectModule(objectLock+"}\n"))
}

func TestOnlyALackingProviderIsRemembered(t *testing.T) {
	mirror := filepath.Join(t.TempDir(), "mirror")
	if err := os.Mkdir(mirror, 0o700); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, func(o *Options) { o.ProviderMirror = mirror })
	for _, class := range []failure.Class{failure.Unknown, failure.Interrupted, failure.Killed} {
		e.remember("m", e.mirrored.Stamp(), &failure.Error{Op: failure.OpInit, Class: class, Err: errors.New("the engine was killed by a signal")})
		if err := e.remembered("m"); err != nil {
			t.Errorf("class %v: %v is remembered", class, err)
		}
	}
}

func TestPrepareDoesNotRememberAFailure(t *testing.T) {
	e := newEngine(t)
	err := e.Prepare(t.Context(), moduleOf("m", `resource "terraform_data" "this" { colour = "red`))
	if failure.ClassOf(err) != failure.Unknown {
		t.Errorf("class is %s, want %s: no providerSpec caused it", failure.ClassOf(err), failure.Unknown)
	}
	expectTexts(t, err, []string{string(failure.OpInit)})
	prepare(t, e, moduleOf("m", instance))
}

func TestPrepareRefuses(t *testing.T) {
	cases := map[string]struct {
		module Module
		want   string
	}{
		"a digest that leads elsewhere":   {module: moduleOf("../x", ""), want: "cannot be used as a folder name"},
		"a module with a backend of ours": {module: Module{Digest: "m", Files: files(map[string]string{backendFile: "{}"})}, want: backendFile},
		"a module with another backend":   {module: moduleOf("m", "terraform {\n  backend \"local\" {}\n}\n"), want: "backend"},
		"a lock file that is broken":      {module: Module{Digest: "m", Files: files(map[string]string{lockFile: "provider {"})}, want: lockFile},
	}
	e := newEngine(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := e.Prepare(t.Context(), tc.module)
			expectTexts(t, err, []string{tc.want})
			if failure.ClassOf(err) != failure.Unknown {
				t.Errorf("class is %s, want %s: no providerSpec caused it", failure.ClassOf(err), failure.Unknown)
			}
		})
	}
}

func TestModuleWithSubdirectories(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, Module{Digest: "deep", Files: files(map[string]string{
		"main.tf":              "module \"sub\" { source = \"./sub\" }\noutput \"text\" { value = module.sub.text }\n",
		"sub/main.tf":          "output \"text\" { value = templatefile(\"${path.module}/files/a.tftpl\", { os = \"" + runtime.GOOS + "\" }) }\n",
		"sub/files/a.tftpl":    "on ${os}",
		".terraform/ignore.me": "x",
	})})
	f := open(t, e, RunSpec{ID: "r", Module: "deep", Backend: backend.at("m")})
	report, err := f.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(report.Outputs["text"].Value); got != `"on `+runtime.GOOS+`"` {
		t.Errorf("output is %s", got)
	}
}
