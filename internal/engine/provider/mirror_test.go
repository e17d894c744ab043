package provider

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	acme   = "registry.opentofu.org/acme/cloud"
	binary = "terraform-provider-cloud_v1.0.0"
)

// writeMirror writes a mirror with one provider, and returns the mirror and the provider's file.
func writeMirror(t *testing.T, content string) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "mirror")
	file = filepath.Join(dir, acme, "1.0.0", "linux_amd64", binary)
	write(t, file, content)
	return dir, file
}

func write(t *testing.T, file, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func line(content, name string) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), name)
}

func TestAManifestVouchesForWhatItLists(t *testing.T) {
	named := "./" + acme + "/1.0.0/linux_amd64/" + binary
	cases := map[string]struct {
		manifest string // none where it is empty
		vouches  bool
		wantErr  []string
	}{
		"no manifest":                  {},
		"listed":                       {manifest: line("built", named), vouches: true},
		"listed for two platforms":     {manifest: line("arm", named) + line("built", named), vouches: true},
		"as sha256sum --binary writes": {manifest: "# built\n\n" + strings.Replace(line("built", named), "  ", " *", 1), vouches: true},
		"another content": {
			manifest: line("released", named),
			wantErr:  []string{binary, "mirror.sha256", line("released", "")[:64], line("built", "")[:64], "restore the file"},
		},
		"another file":   {manifest: line("built", "other"), wantErr: []string{binary, "not listed", "mirror.sha256", "sha256sum"}},
		"no file at all": {manifest: "# nothing\n", wantErr: []string{binary, "not listed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir, file := writeMirror(t, "built")
			if tc.manifest != "" {
				write(t, dir+".sha256", tc.manifest)
			}
			m, err := OpenMirror(dir + "/")
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Vouches(file)
			if got != tc.vouches || (err != nil) != (tc.wantErr != nil) {
				t.Errorf("got %t, %v, want %t and an error with %q", got, err, tc.vouches, tc.wantErr)
			}
			for _, part := range tc.wantErr {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("got error %q, want %q in it", err, part)
				}
			}
		})
	}
}

func TestAManifestThatIsNoneIsRefused(t *testing.T) {
	for _, content := range []string{"abc  file\n", line("x", "file") + strings.Repeat("z", 64) + "  file\n", line("x", "")[:64] + "\n"} {
		dir, _ := writeMirror(t, "built")
		write(t, dir+".sha256", content)
		if _, err := OpenMirror(dir); err == nil || !strings.Contains(err.Error(), "mirror.sha256") {
			t.Errorf("%q: got %v, want an error that names the manifest", content, err)
		}
	}
}

func TestAFileIsReadAgainOnlyWhenItIsAnother(t *testing.T) {
	dir, file := writeMirror(t, "first")
	m, err := OpenMirror(dir)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(why, want string) {
		t.Helper()
		if got, err := m.Digest(file); err != nil || got != line(want, "")[:64] {
			t.Errorf("%s: got %q, %v, want the digest of %q", why, got, err, want)
		}
	}
	at := time.Unix(1e9, 0)
	touch := func() {
		t.Helper()
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	touch()
	expect("first", "first")
	write(t, file, "other") // of the same size
	touch()
	expect("the same identity", "first")
	at = at.Add(time.Nanosecond)
	touch()
	expect("another time", "other")
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	write(t, file, "third")
	touch()
	expect("another inode", "third")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Digest(file); err == nil {
		t.Error("a file that is gone has a digest")
	}
}

func TestPackagesAreFoundUnpackedAndPacked(t *testing.T) {
	dir, file := writeMirror(t, "built")
	packed := filepath.Join(dir, acme, "terraform-provider-cloud_1.0.0_linux_amd64.zip")
	write(t, packed, "zip")
	m, err := OpenMirror(dir)
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"1.0.0": file + " " + packed, "1.0.1": ""} {
		found, err := m.Packages(acme, version, "linux_amd64")
		if got := strings.Join(found, " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", version, got, err, want)
		}
	}
}
