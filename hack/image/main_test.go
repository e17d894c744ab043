package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var (
	fixed = source{version: "v1.2.3", revision: "c0ffee", created: time.Unix(1_700_000_000, 0).UTC(), out: io.Discard}
	host  = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
)

// tiny is a program that is quick to build and to pack.
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
	for name, content := range map[string]string{"go.mod": "module example.com/tiny\n", "main.go": "package main\n\nfunc main() { println() }\n"} {
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

// small is the content of an image with all its layers, in which every program is tiny.
func small(t *testing.T) content {
	t.Helper()
	engines, providers := toolFiles(map[string]string{
		"tofu": tiny,
		"mirror/registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud_v1.0.0": tiny,
		"pulumi-plugins/resource-acme-v1.0.0/pulumi-resource-acme":                                  tiny,
	})
	programs := []file{program("usr/bin/machine-controllers", tiny)}
	layers := []layer{system(), work(), newLayer("engines", engines...), newLayer("providers", providers...)}
	made, err := fixed.list(host, append(layers, newLayer("programs", programs...)))
	if err != nil {
		t.Fatal(err)
	}
	programs = append(programs, file{path: sbomFile, mode: 0o644, content: made.document})
	return content{platform: host, layers: append(layers, newLayer("programs", programs...)), sbom: made.document}
}

// entry is what an image says of a file, beside its content.
type entry struct {
	Mode  fs.FileMode
	Owner int
	Link  string
}

// entries returns the files of an archive.
func entries(t *testing.T, archive io.Reader) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != header.Gid || !header.ModTime.Equal(fixed.created) {
			t.Errorf("%s belongs to %d:%d and is of %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		out[strings.TrimSuffix(header.Name, "/")] = entry{Mode: header.FileInfo().Mode(), Owner: header.Uid, Link: header.Linkname}
	}
}

// imageOf returns the one image of a layout.
func imageOf(t *testing.T, folder string) v1.Image {
	t.Helper()
	root, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestTheSameFilesGiveTheSameImage(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "image")
	for _, folder := range []string{one, two, two} { // the last replaces the one before
		if err := fixed.write(t.Context(), folder, []content{small(t)}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(tree(t, one), tree(t, two)); diff != "" {
		t.Errorf("two layouts of the same files differ:\n%s", diff)
	}
	if err := validate.Image(imageOf(t, one)); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(two)); err != nil || len(left) != 1 {
		t.Errorf("left beside the layout: %v, %v", left, err)
	}
}

// tree returns the names and sizes of all files; those of blobs are their digests.
func tree(t *testing.T, folder string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		out[strings.TrimPrefix(path, folder)] = info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheImageIsWhatItsLayersSay(t *testing.T) {
	var got bytes.Buffer
	for _, l := range small(t).layers {
		var archive bytes.Buffer
		if err := writeArchive(&archive, l, fixed.created); err != nil {
			t.Fatal(err)
		}
		found := entries(t, &archive)
		for _, f := range l.files {
			if found[f.path].Mode.Type() != f.mode.Type() {
				t.Errorf("/%s is %s in the archive", f.path, found[f.path].Mode)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if at := found[name]; !at.Mode.IsDir() || at.Owner != 0 || at.Mode.Perm() != 0o755 {
				fmt.Fprintln(&got, l.name, at.Mode, at.Owner, strings.TrimSpace(name+" "+at.Link))
			}
		}
	}
	want := `system -rw-r--r-- 0 etc/group
system -rw-r--r-- 0 etc/nsswitch.conf
system -rw-r--r-- 0 etc/passwd
system -rw-r--r-- 0 etc/ssl/certs/ca-certificates.crt
system dtrwxrwxrwx 0 tmp
work drwxr-xr-x 65532 var/lib/machine-iac
engines -rwxr-xr-x 0 usr/bin/tofu
providers -rwxr-xr-x 0 usr/share/machine-iac/mirror/registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud_v1.0.0
providers Lrwxrwxrwx 0 usr/share/machine-iac/mirror/registry.terraform.io/acme/cloud/1.0.0/linux_amd64 ../../../../registry.opentofu.org/acme/cloud/1.0.0/linux_amd64
providers -rwxr-xr-x 0 usr/share/machine-iac/pulumi-plugins/resource-acme-v1.0.0/pulumi-resource-acme
programs -rwxr-xr-x 0 usr/bin/machine-controllers
programs -rw-r--r-- 0 usr/share/machine-iac/sbom.spdx.json
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheDockerfileGivesTheSameImage(t *testing.T) {
	made := small(t)
	staged := filepath.Join(t.TempDir(), "layers")
	if err := stage(staged, made.layers, fixed.created); err != nil {
		t.Fatal(err)
	}
	if err := stage(staged, made.layers, fixed.created); err == nil || !strings.Contains(err.Error(), "name a new folder") {
		t.Errorf("staging into a folder with files: %v", err)
	}
	folder := filepath.Join(t.TempDir(), "image")
	if err := fixed.write(t.Context(), folder, []content{made}); err != nil {
		t.Fatal(err)
	}
	image := imageOf(t, folder)
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	docker := readDockerfile(t, "../../Dockerfile")
	if len(docker.copies) != len(layers) {
		t.Fatalf("the Dockerfile copies %d layers of %d", len(docker.copies), len(layers))
	}
	for at, l := range layers {
		archive, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entries(t, archive), docker.copies[at].entries(t, staged)); diff != "" {
			t.Errorf("layer %s (-image +Dockerfile):\n%s", made.layers[at].name, diff)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Config, docker.config); diff != "" {
		t.Errorf("configuration (-image +Dockerfile):\n%s", diff)
	}
}

// dockerfile is what the last stage of a Dockerfile says.
type dockerfile struct {
	copies []copied
	config v1.Config
}

// copied is an instruction COPY.
type copied struct {
	from, to string
	owner    int
}

var (
	copyLine  = regexp.MustCompile(`^COPY --from=build (?:--chown=(\d+):(\d+) )?/layers/(\S+) (/\S*)$`)
	labelPart = regexp.MustCompile(`(\S+)="([^"]*)"`)
)

func readDockerfile(t *testing.T, path string) dockerfile {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(strings.ReplaceAll(string(raw), "\\\n", ""), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage is not FROM scratch")
	}
	out := dockerfile{config: v1.Config{Labels: map[string]string{}}}
	for line := range strings.Lines(last) {
		line = strings.TrimSpace(line)
		instruction, rest, _ := strings.Cut(line, " ")
		switch instruction {
		case "COPY":
			found := copyLine.FindStringSubmatch(line)
			if found == nil || found[1] != found[2] {
				t.Fatalf("this test cannot read %q", line)
			}
			one := copied{from: found[3], to: found[4]}
			if found[1] != "" {
				one.owner = owner
			}
			out.copies = append(out.copies, one)
		case "LABEL":
			for _, found := range labelPart.FindAllStringSubmatch(rest, -1) {
				out.config.Labels[found[1]] = strings.ReplaceAll(found[2], "${VERSION}", fixed.version)
			}
		case "ENV":
			out.config.Env = append(out.config.Env, rest)
		case "WORKDIR":
			out.config.WorkingDir = rest
		case "USER":
			out.config.User = rest
		case "ENTRYPOINT":
			if err := json.Unmarshal([]byte(rest), &out.config.Entrypoint); err != nil {
				t.Fatal(err)
			}
		case "ARG", "":
		default:
			t.Fatalf("this test cannot read %q", line)
		}
	}
	return out
}

// entries returns what the instruction puts into the image. Folders above a destination are made as root's; one that is there stays.
func (c copied) entries(t *testing.T, staged string) map[string]entry {
	t.Helper()
	source := filepath.Join(staged, filepath.FromSlash(c.from))
	to := strings.Trim(c.to, "/")
	out := map[string]entry{}
	for folder := filepath.Dir(to); folder != "."; folder = filepath.Dir(folder) {
		out[folder] = entry{Mode: fs.ModeDir | 0o755}
	}
	err := filepath.WalkDir(source, func(path string, found fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(source, path)
		if name = filepath.Join(to, name); err != nil || name == "." {
			return err
		}
		info, err := found.Info()
		if err != nil {
			return err
		}
		one := entry{Mode: info.Mode(), Owner: c.owner}
		if info.Mode()&fs.ModeSymlink != 0 {
			one.Link, err = os.Readlink(path)
		} else if !info.ModTime().Equal(fixed.created) {
			t.Errorf("%s is of %s", path, info.ModTime())
		}
		out[name] = one
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheListNamesEveryFileAndItsModules(t *testing.T) {
	made := small(t)
	var d document
	if err := json.Unmarshal(made.sbom, &d); err != nil {
		t.Fatal(err)
	}
	known, named := map[string]bool{d.ID: true}, map[string]bool{}
	for _, p := range d.Packages {
		if known[p.ID] {
			t.Errorf("two are called %s", p.ID)
		}
		known[p.ID] = true
	}
	for _, f := range d.Files {
		if known[f.ID] {
			t.Errorf("two are called %s", f.ID)
		}
		known[f.ID], named[f.Name] = true, true
	}
	for _, l := range made.layers {
		for _, f := range l.files {
			if f.mode.IsRegular() && f.path != sbomFile && !named["./"+f.path] {
				t.Errorf("/%s is not in the list", f.path)
			}
		}
	}
	linked := map[string]int{}
	for _, r := range d.Relationships {
		if !known[r.From] || !known[r.To] {
			t.Errorf("%s %s %s: one of them is not in the list", r.From, r.Type, r.To)
		}
		if r.Type == "STATIC_LINK" {
			linked[r.From]++
		}
	}
	if len(linked) != 4 { // as many as small has programs
		t.Errorf("modules were found in %v", linked)
	}
	at := slices.IndexFunc(d.Packages, func(p spdxPackage) bool { return p.Name == "stdlib" })
	if want := "pkg:golang/stdlib@" + strings.TrimPrefix(runtime.Version(), "go"); at < 0 || d.Packages[at].References[0].Locator != want {
		t.Errorf("the standard library is %v; want %s", d.Packages, want)
	}
	for _, id := range slices.Collect(maps.Keys(known)) {
		if !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(id) {
			t.Errorf("SPDX does not allow the name %s", id)
		}
	}
}

func TestTheListHasTheModulesThatAProgramWasLinkedFrom(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	made, err := fixed.list(host, []layer{newLayer("programs", program("usr/bin/test", self))})
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(made.document, &d); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, p := range d.Packages {
		versions[p.Name] = p.Version
	}
	if versions["github.com/google/go-containerregistry"] == "" {
		t.Errorf("the modules of this test are %v", versions)
	}
	if versions["machine-iac-operator"] != fixed.version {
		t.Errorf("the image has the version %q", versions["machine-iac-operator"])
	}
}

func TestAProgramThatIsNoneIsReported(t *testing.T) {
	script := filepath.Join(t.TempDir(), "tofu")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := fixed.list(host, []layer{newLayer("engines", program("usr/bin/tofu", script))})
	if err == nil || !strings.Contains(err.Error(), "which Go modules /usr/bin/tofu was linked from") {
		t.Errorf("the error is %v", err)
	}
}

func TestAuthoritiesAreThoseOfTheModule(t *testing.T) {
	pool := x509.NewCertPool()
	if text := authorities(); !pool.AppendCertsFromPEM([]byte(text)) || strings.Count(text, "BEGIN CERTIFICATE") < 100 {
		t.Errorf("the file has %d certificates", strings.Count(text, "BEGIN CERTIFICATE"))
	}
}

func TestPushUploadsImageAndList(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true)))
	defer server.Close()
	folder := filepath.Join(t.TempDir(), "image")
	if err := fixed.write(t.Context(), folder, []content{small(t)}); err != nil {
		t.Fatal(err)
	}
	to := strings.TrimPrefix(server.URL, "http://") + "/machine-iac-operator:v1.2.3"
	var out bytes.Buffer
	if err := push(t.Context(), folder, to, &out); err != nil {
		t.Fatal(err)
	}
	reference, err := name.NewDigest(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatalf("push printed %q: %v", out.String(), err)
	}
	pushed, err := remote.Image(reference, remote.WithPlatform(host))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := pushed.Digest()
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := remote.Referrers(reference.Digest(digest.String()), remote.WithFilter("artifactType", sbomType))
	if err != nil {
		t.Fatal(err)
	}
	found, err := referrers.IndexManifest()
	if err != nil || len(found.Manifests) != 1 {
		t.Fatalf("what refers to the image: %v, %v", found, err)
	}
	for _, tc := range []struct{ folder, to, want string }{
		{folder, "UPPER/case", "write REGISTRY/REPOSITORY:TAG"},
		{t.TempDir(), to, "run 'make image'"},
	} {
		if err := push(t.Context(), tc.folder, tc.to, io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("push %s: %v; want %q", tc.to, err, tc.want)
		}
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
	got, files := imageTools([]byte("etcd|etcd\ntofu|tofu\nprovider-acme|mirror/a\nschema-aws|schemas/a\npulumi-language-go|pulumi-language-go\n"))
	if diff := cmp.Diff([]string{"tofu", "provider-acme", "pulumi-language-go"}, got); diff != "" || len(files) != 3 {
		t.Errorf("(-want +got):\n%s\nfiles %v", diff, files)
	}
}

func TestArgumentsAndEnvironmentAreRead(t *testing.T) {
	for _, arguments := range [][]string{nil, {"stage"}, {"push"}, {"other", "x"}} {
		if err := run(t.Context(), arguments, io.Discard); err == nil || err.Error() != usage {
			t.Errorf("%q: %v; want the usage", arguments, err)
		}
	}
	for name, want := range map[string]string{"": "linux/" + runtime.GOARCH, "linux/arm64": "linux/arm64", "darwin/arm64": "", "linux": "", "linux/arm/v7": ""} {
		platform, err := platformOf(name)
		if (err != nil) != (want == "") || err == nil && platform.String() != want {
			t.Errorf("%q: %s, %v; want %q", name, platform, err, want)
		}
	}
	t.Chdir("../..")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if s, err := newSource(t.Context(), "v1", io.Discard); err != nil || !s.created.Equal(fixed.created) {
		t.Errorf("created at %s, %v", s.created, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "soon")
	if _, err := newSource(t.Context(), "v1", io.Discard); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("the error is %v", err)
	}
}
