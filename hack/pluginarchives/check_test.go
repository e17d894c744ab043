package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const (
	// tiny is a program that is quick to build.
	tiny    = "example.com/tiny"
	version = "v1.2.3"
)

// buildTiny builds a program for this platform.
func buildTiny(t *testing.T, cgo string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module " + tiny + "\n", "main.go": "package main\n\nvar version = \"development\"\n\nfunc main() { println(version) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", "tiny", ".")
	command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED="+cgo, "GOFLAGS=", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(dir, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// release is a folder to be made, with one archive.
type release struct {
	files              []file
	program            string
	os, version, sum   string
	without            string
	manifest, leftOver string
}

// write makes the folder.
func (r release) write(t *testing.T) string {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	writer := tar.NewWriter(zipped)
	for _, one := range r.files {
		if err := writer.WriteHeader(&tar.Header{Name: one.name, Mode: int64(one.mode), Size: int64(len(one.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(one.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	if r.sum == "" {
		sum := sha256.Sum256(archive.Bytes())
		r.sum = hex.EncodeToString(sum[:])
	}
	if r.manifest == "" {
		r.manifest = fmt.Sprintf("spec:\n  version: %s\n  platforms:\n  - selector: {matchLabels: {os: %s, arch: %s}}\n    uri: https://x.example/tiny-new.tar.gz\n    sha256: %s\n    bin: tiny\n",
			r.version, r.os, runtime.GOARCH, r.sum)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"tiny-new.tar.gz": archive.Bytes(), manifestName: []byte(r.manifest), r.leftOver: {}} {
		if name == "" || name == r.without {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAnArchiveIsHeldToTheManifest(t *testing.T) {
	program := file{name: "tiny", mode: 0o755, content: buildTiny(t, "0")}
	text := file{name: licence, mode: 0o644, content: []byte("free")}
	for name, tc := range map[string]struct {
		change func(*release)
		want   string
	}{
		"one that is as it should be":            {func(*release) {}, ""},
		"one with another checksum":              {func(r *release) { r.sum = strings.Repeat("ab", 32) }, "and in the manifest abab"},
		"one that is not there":                  {func(r *release) { r.without = "tiny-new.tar.gz" }, "it is not there; build it for " + runtime.GOOS + "/" + runtime.GOARCH},
		"one for another platform":               {func(r *release) { r.os = "plan9" }, "tiny is built with GOOS=" + runtime.GOOS + "; want plan9"},
		"one of another version":                 {func(r *release) { r.version = "v9.9.9" }, `tiny does not bear the version "v9.9.9"`},
		"one of another program":                 {func(r *release) { r.program = "example.com/other" }, "tiny is built of example.com/tiny; want example.com/other"},
		"one that needs a C library":             {func(r *release) { r.files[0].content = buildTiny(t, "1") }, "tiny is built with CGO_ENABLED=1; want 0"},
		"one without the licence":                {func(r *release) { r.files = r.files[:1] }, `it has the files ["tiny"]; want ["tiny" "LICENSE"]`},
		"one whose program cannot be run":        {func(r *release) { r.files[0].mode = 0o644 }, "tiny has the mode -rw-r--r--"},
		"one with something else for a program":  {func(r *release) { r.files[0].content = []byte("#!/bin/sh\n") }, "reading what tiny was built of"},
		"one that no platform is named for":      {func(r *release) { r.leftOver = "tiny-old.tar.gz" }, "tiny-old.tar.gz: the manifest does not name it"},
		"a manifest that is not there":           {func(r *release) { r.without = manifestName }, "reading the manifest"},
		"a manifest that names no platform":      {func(r *release) { r.manifest = "spec: {version: v1.2.3}\n" }, "names no platform"},
		"a manifest with words for the checksum": {func(r *release) { r.sum = "SHA256_LINUX_AMD64" }, "and in the manifest SHA256_LINUX_AMD64"},
	} {
		t.Run(name, func(t *testing.T) {
			r := release{files: []file{program, text}, program: tiny, os: runtime.GOOS, version: version}
			tc.change(&r)
			good, err := check(r.write(t), r.program)
			if tc.want == "" {
				if err != nil || len(good) != 1 || filepath.Base(good[0]) != "tiny-new.tar.gz" {
					t.Errorf("check returns %q, %v", good, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("check returns %q, %v; want %q", good, err, tc.want)
			}
		})
	}
}
