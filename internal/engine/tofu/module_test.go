package tofu

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
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
	if diff := cmp.Diff(parsed, parsed.forEngine(OpenTofu)); diff != "" {
		t.Errorf("for OpenTofu (-want +got):\n%s", diff)
	}
	b.Hashes = nil
	if diff := cmp.Diff(selections{b.Address: b, d.Address: d}, parsed.withoutHashes()); diff != "" {
		t.Errorf("without hashes (-want +got):\n%s", diff)
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
		"a provider beside it":    {committed: of("a", "1"), selected: of("a", "1", "b", "2"), want: []string{"does not select b", "version 2"}},
		"another version":         {committed: of("a", "1"), selected: of("a", "2"), want: []string{"version 1 of a", "chose 2"}},
		"a module without a file": {committed: of(), selected: of("a", "1"), want: []string{"does not select a"}},
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
	cases := map[string]struct {
		lock     string
		noMirror bool
		want     []string
	}{
		"a lock file that pins a version without checksums": {lock: objectLock + "}\n"},
		"a lock file with another checksum":                 {lock: objectLock + "  hashes = [\"h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]\n}\n", want: []string{"kubectl", "checksums"}},
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
			if report := plan(t, f, PlanOptions{}); !report.CreatesOnly() || report.Planned.Add != 1 {
				t.Errorf("plan is %+v, want one create", report.Planned)
			}
		})
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
	if err := newEngine(t, at).Prepare(t.Context(), objectModule(string(lock))); err != nil {
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
	expectTexts(t, newEngine(t, at).Prepare(t.Context(), objectModule(string(lock))), []string{"kubectl", "checksums"})
}

func TestPrepareOnceAlsoAfterARestart(t *testing.T) {
	dir := workFolder(t)
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
		"a digest that leads elsewhere":   {module: moduleOf("../x", ""), want: "can't name a folder"},
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
