package main

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var (
	fixed = source{version: "v1.2.3", revision: "c0ffee", created: time.Unix(1_700_000_000, 0).UTC(), out: io.Discard}
	host  = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
)

// tiny is a program that is quick to build and pack.
var tiny string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "tiny-")
	if err == nil {
		tiny, err = buildTiny(folder)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "building a small program:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func buildTiny(folder string) (string, error) {
	for name, content := range map[string]string{
		"go.mod": "module example.com/tiny\n", "main.go": "package main\n\nfunc main() { println() }\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", "tiny", ".")
	command.Dir, command.Env = folder, append(environment(host), "GOWORK=off")
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(folder, "tiny"), nil
}

// small returns the content of an image with all its layers, in which every program is tiny.
func small(t *testing.T) content {
	t.Helper()
	engines, providers := toolFiles(map[string]string{
		"image/tofu": tiny,
		"mirror/registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud_v1.0.0": tiny,
		"pulumi-plugins/resource-acme-v1.0.0/pulumi-resource-acme":                                  tiny,
	})
	listed, err := manifest(providers)
	if err != nil {
		t.Fatal(err)
	}
	providers = append(providers, listed)
	programs := []file{program("usr/bin/machine-controllers", tiny)}
	layers := []layer{system(), home(), newLayer("engines", engines...), newLayer("providers", providers...)}
	made, err := fixed.list(host, append(layers, newLayer("programs", programs...)))
	if err != nil {
		t.Fatal(err)
	}
	programs = append(programs, file{path: sbomFile, mode: 0o644, content: made.document})
	return content{platform: host, layers: append(layers, newLayer("programs", programs...)), sbom: made.document}
}

func TestAuthoritiesAreThoseOfTheModule(t *testing.T) {
	pool := x509.NewCertPool()
	if text := authorities(); !pool.AppendCertsFromPEM([]byte(text)) || strings.Count(text, "BEGIN CERTIFICATE") < 100 {
		t.Errorf("the file has %d certificates", strings.Count(text, "BEGIN CERTIFICATE"))
	}
}

func TestProgramsAndToolsOfTheImage(t *testing.T) {
	names, err := programNames("../../cmd")
	if err != nil || !slices.Contains(names, "machine-controllers") || slices.Contains(names, "kubectl-machine") {
		t.Errorf("the programs are %v, %v", names, err)
	}
	if _, err := programNames(t.TempDir()); err == nil {
		t.Error("a folder without programs is no error")
	}
	got, files := imageTools([]byte(
		"etcd|etcd\ntofu|tofu\ntofu-image|image/tofu\nprovider-acme|mirror/a\nschema-aws|schemas/a\n" +
			"pulumi-language-go|pulumi-language-go\n"))
	if diff := cmp.Diff([]string{"tofu-image", "provider-acme", "pulumi-language-go"}, got); diff != "" ||
		len(files) != 3 {
		t.Errorf("(-want +got):\n%s\nfiles %v", diff, files)
	}
}

func TestTheManifestListsTheProvidersOfTheMirror(t *testing.T) {
	staged := t.TempDir()
	if err := stage(staged, small(t).layers, fixed.created); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	// The manager looks beside the folder that it is given.
	got, err := os.ReadFile(filepath.Join(staged, "providers", share, "mirror.sha256"))
	want := fmt.Sprintf("%x  registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud_v1.0.0\n",
		sha256.Sum256(content))
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestProvidersOfAMirrorAreAdded(t *testing.T) {
	folder := t.TempDir()
	const (
		unpacked = "registry.opentofu.org/acme/cloud/2.0.0/linux_amd64/terraform-provider-cloud_v2.0.0"
		own      = "registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud_v1.0.0"
		packed   = "registry.terraform.io/acme/other/terraform-provider-other_3.0.0_linux_amd64.zip"
	)
	for _, name := range []string{unpacked, own, packed, "registry.terraform.io/acme/other/terraform-provider-other_3.0.0_linux_arm64.zip"} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	added, err := addedProviders(folder, v1.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	_, image := toolFiles(map[string]string{"mirror/" + own: tiny})
	got := map[string]string{}
	for _, f := range without(added, image) {
		got[strings.TrimPrefix(f.path, share+"/mirror/")] = f.target
	}
	want := map[string]string{
		unpacked: "", packed: "",
		strings.Replace(unpacked, "opentofu.org", "terraform.io", 1): "../../../../../" + unpacked,
		strings.Replace(packed, "terraform.io", "opentofu.org", 1):   "../../../" + packed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("added files and targets of links (-want +got):\n%s", diff)
	}
	_, err = addedProviders(folder, v1.Platform{OS: "linux", Architecture: "riscv64"})
	if err == nil || !strings.Contains(err.Error(), "providers mirror -platform=linux_riscv64") {
		t.Errorf("a mirror for other platforms: %v", err)
	}
}

func TestTheImageHasTheManifestsForAReleaseOfOpenShift(t *testing.T) {
	files, err := payload("../../install/openshift")
	if err != nil {
		t.Fatal(err)
	}
	has := func(path string) bool { return slices.ContainsFunc(files, func(f file) bool { return f.path == path }) }
	if !has("manifests/image-references") || !has("manifests/0000_30_machine-api-operator_11_deployment.yaml") {
		t.Errorf("the files are %v", files)
	}
	if fixed.config().Labels["io.openshift.release.operator"] != "true" {
		t.Error("a release payload does not take them: the label lacks")
	}
	if _, err := payload(t.TempDir() + "/none"); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

func TestArgumentsAndEnvironmentAreRead(t *testing.T) {
	for _, arguments := range [][]string{nil, {"stage"}, {"push"}, {"other", "x"}} {
		if err := run(t.Context(), arguments, io.Discard); err == nil || err.Error() != usage {
			t.Errorf("%q: %v; want the usage", arguments, err)
		}
	}
	for name, want := range map[string]string{
		"": "linux/" + runtime.GOARCH, "linux/arm64": "linux/arm64", "darwin/arm64": "",
		"linux": "", "linux/arm/v7": "",
	} {
		platform, err := platformOf(name)
		if (err != nil) != (want == "") || err == nil && platform.String() != want {
			t.Errorf("%q: %s, %v; want %q", name, platform, err, want)
		}
	}
	t.Chdir("../..")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if s, err := newSource(t.Context(), "v1", "", io.Discard); err != nil || !s.created.Equal(fixed.created) {
		t.Errorf("created at %s, %v", s.created, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "soon")
	if _, err := newSource(t.Context(), "v1", "", io.Discard); err == nil ||
		!strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("the error is %v", err)
	}
}
