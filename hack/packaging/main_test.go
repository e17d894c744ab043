package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func TestPackagesAreThoseOfInstallKubernetes(t *testing.T) {
	if err := run([]string{"generate", "-check", root}, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestChangedAndStaleFilesAreFound(t *testing.T) {
	made := files{"install/helm/a.yaml": []byte("a\n")}
	folder := t.TempDir()
	if err := made.compare(folder); err == nil || !strings.Contains(err.Error(), "a.yaml") {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := made.write(folder); err != nil {
		t.Fatal(err)
	}
	if err := made.compare(folder); err != nil {
		t.Error(err)
	}
	for name, content := range map[string]string{
		"a.yaml": "b\n", "old.yaml": fmt.Sprintf(header, single), "own.yaml": "c\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, "install", "helm", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := made.compare(folder)
	if err == nil || !strings.Contains(err.Error(), "a.yaml is out of date") ||
		!strings.Contains(err.Error(), "old.yaml is not generated any more") ||
		strings.Contains(err.Error(), "own.yaml") {
		t.Errorf("comparing: %v", err)
	}
	if err := errors.Join(made.write(folder), made.compare(folder)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "install", "helm", "own.yaml")); err != nil {
		t.Errorf("a file that is written by hand is removed: %v", err)
	}
}

func TestAReleaseNeedsAVersionAndAnImageOfIt(t *testing.T) {
	for _, bad := range [][2]string{
		{"", ""}, {"1.2.3", ""}, {"v1.2", ""}, {"v1.2.3-4-gabc-dirty+x", ""}, {"v01.2.3", ""}, {"latest", ""},
		{"v1.2.3", "registry.example/op"}, {"v1.2.3", "registry.example:5000/op"}, {"v1.2.3", "Registry/OP:v1"},
		{"v1.2.3", "op@sha256:12"}, {"v1.2.3", "a b"},
	} {
		if r, err := newRelease(bad[0], bad[1]); err == nil {
			t.Errorf("version %q, image %q: %+v", bad[0], bad[1], r)
		}
	}
	folder := t.TempDir()
	if err := run([]string{"release", "-check", "-version", "v1.2.3", "-o", folder, root}, io.Discard); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("with -check it has written %v (%v)", entries, err)
	}
	digest := "sha256:" + strings.Repeat("0a", 32)
	for image, want := range map[string]release{
		"":                                     {repository: registry, tag: "v1.2.3"},
		"registry.example:5000/op:v1":          {repository: "registry.example:5000/op", tag: "v1"},
		"registry.example:5000/op@" + digest:   {repository: "registry.example:5000/op", digest: digest},
		"registry.example/op:v1.2.3@" + digest: {repository: "registry.example/op", tag: "v1.2.3", digest: digest},
	} {
		r, err := newRelease("v1.2.3", image)
		if err != nil || r.repository != want.repository || r.tag != want.tag || r.digest != want.digest {
			t.Errorf("image %q: %+v, %v", image, r, err)
		}
	}
}

func TestARelease(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"kubectl-machine-linux-amd64.tar.gz", "machine-iac-operator-1.2.2.tgz"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image := "registry.example/op@sha256:" + strings.Repeat("0a", 32)
	arguments := []string{"release", "-version", "v1.2.3", "-image", image, "-o", folder, root}
	if err := run(arguments, io.Discard); err != nil {
		t.Fatal(err)
	}
	manifest := content(t, folder, "install.yaml")
	if strings.Count(manifest, image) != 1 || strings.Contains(manifest, treeImage+":"+treeTag) {
		t.Errorf("install.yaml does not have the image of the release once")
	}
	const crd = "kind: CustomResourceDefinition\n"
	if crds := content(t, folder, "crds.yaml"); strings.Contains(manifest, crd) || strings.Count(crds, crd) != 5 || strings.Count(crds, "\nkind: ") != 5 {
		t.Error("install.yaml has CRDs, or crds.yaml has not exactly those of the five kinds")
	}
	payload := content(t, folder, "openshift.yaml")
	if strings.Count(payload, image) != 2 || strings.Contains(payload, payloadImage) ||
		strings.Contains(payload, payloadVersion) || strings.Count(payload, "kind: CustomResourceDefinition\n") != 3 {
		t.Errorf("openshift.yaml does not have the image and the version of the release, and a CRD for each kind")
	}
	chart := unpacked(t, folder, "machine-iac-operator-1.2.3.tgz")
	for file, want := range map[string]string{
		"machine-iac-operator/Chart.yaml":                   "\nversion: \"1.2.3\"\nappVersion: \"v1.2.3\"\n",
		"machine-iac-operator/values.yaml":                  "\n  repository: \"registry.example/op\"\n",
		"machine-iac-operator/templates/deployment.yaml":    "machine-iac-operator.image",
		"machine-iac-operator/templates/crds/machines.yaml": "keep",
	} {
		if !strings.Contains(chart[file], want) {
			t.Errorf("%s of the chart does not have %q:\n%.1000s", file, want, chart[file])
		}
	}
	if values := chart["machine-iac-operator/values.yaml"]; !strings.Contains(values, `digest: "sha256:0a0a`) ||
		!strings.Contains(values, `tag: ""`) {
		t.Errorf("the chart has the values\n%.600s", values)
	}
	version := unpacked(t, folder,
		"machine-iac-operator-olm-1.2.3.tgz")["bundle/manifests/machine-iac-operator.clusterserviceversion.yaml"]
	for _, want := range []string{
		"name: machine-iac-operator.v1.2.3\n", "\n  version: 1.2.3\n", "containerImage: " + image, "image: " + image,
	} {
		if !strings.Contains(version, want) {
			t.Errorf("the bundle does not have %q", want)
		}
	}
	lines := strings.Split(strings.TrimSpace(content(t, folder, sums)), "\n")
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(content(t, folder, name)))); got != sum {
			t.Errorf("%s has the checksum %s, not %s", name, got, sum)
		}
	}
	if len(lines) != 6 {
		t.Errorf("there are checksums of %d files, want those of the plugin's archive, crds.yaml, install.yaml, openshift.yaml, "+
			"the chart and the bundle:\n%s", len(lines), lines)
	}
	again := t.TempDir()
	arguments[6] = again
	if err := run(arguments, io.Discard); err != nil {
		t.Fatal(err)
	}
	if a, b := content(t, folder, "machine-iac-operator-1.2.3.tgz"),
		content(t, again, "machine-iac-operator-1.2.3.tgz"); a != b {
		t.Error("the same sources give another archive")
	}
}

func content(t *testing.T, folder, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func unpacked(t *testing.T, folder, name string) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader([]byte(content(t, folder, name))))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = string(text)
	}
}
