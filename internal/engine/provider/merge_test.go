package provider

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMirrorsAreMerged merges the manager's own mirror and that of an image, as the init containers do, twice: a Pod's
// init containers may run again.
func TestMirrorsAreMerged(t *testing.T) {
	own, image, to := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "mirror")
	const cloud = "registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud"
	write := func(dir, name, content string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(own, cloud, "own")
	write(image, cloud, "another of the same version")
	write(image, strings.ReplaceAll(cloud, "1.0.0", "2.0.0"), "newer")
	pack(t, filepath.Join(image, "registry.opentofu.org/acme/cloud/terraform-provider-cloud_3.0.0_linux_amd64.zip"))
	for range 2 {
		if err := Merge(own, to, true); err != nil {
			t.Fatal(err)
		}
		if err := Merge(image, to, false); err != nil {
			t.Fatal(err)
		}
	}
	for version, want := range map[string]string{"1.0.0": "own", "2.0.0": "newer", "3.0.0": "packed"} {
		file := filepath.Join(to, strings.ReplaceAll(cloud, "1.0.0", version))
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q: %v", version, got, want, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s cannot be executed: %v", version, err)
		}
		if missing := Lacking(to, []Requirement{{Source: "acme/cloud", Version: version}}); len(missing) > 0 {
			t.Errorf("%s is not found", version)
		}
	}
	m, err := OpenMirror(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, content := m.Manifest(); strings.Count(string(content), "\n") != 3 || m.Check() != nil {
		t.Errorf("manifest:\n%s%v", content, m.Check())
	}
	if err := Merge(t.TempDir(), to, false); err == nil || !strings.Contains(err.Error(), "no provider in") {
		t.Errorf("an image without providers: %v", err)
	}
}

func pack(t *testing.T, file string) {
	t.Helper()
	archive, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	packed := zip.NewWriter(archive)
	header := &zip.FileHeader{Name: "terraform-provider-cloud"}
	header.SetMode(0o755)
	inner, err := packed.CreateHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inner.Write([]byte("packed")); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}
