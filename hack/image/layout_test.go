package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

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
	long.Test(t)
	one, two := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "image")
	for _, folder := range []string{one, two, two} { // the last one replaces its predecessor
		if err := fixed.write(folder, []content{small(t)}); err != nil {
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

// tree returns the names and sizes of all files. Blobs are named by digest.
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
home drwxr-xr-x 65532 var/lib/machine-iac
engines -rwxr-xr-x 0 usr/bin/tofu
providers -rw-r--r-- 0 usr/share/machine-iac/mirror.sha256
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
