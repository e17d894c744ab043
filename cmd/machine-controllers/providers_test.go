package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// noexec has mounts appear to deny execution.
func noexec(t *testing.T, mounts ...string) {
	t.Helper()
	real := statfs
	t.Cleanup(func() { statfs = real })
	statfs = func(path string, found *unix.Statfs_t) error {
		err := real(path, found)
		if slices.Contains(mounts, path) {
			found.Flags |= unix.MS_NOEXEC
		}
		return err
	}
}

// TestTheManagersOwnProvidersAreAdded runs the first of the init containers. The others run its copy of the program.
func TestTheManagersOwnProvidersAreAdded(t *testing.T) {
	mirror, mounted, denied, volume := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	noexec(t, denied)
	const name = "registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud"
	newer := strings.ReplaceAll(name, "1.0.0", "2.0.0")
	copied := strings.ReplaceAll(name, "1.0.0", "3.0.0")
	for _, file := range []string{filepath.Join(mirror, name), filepath.Join(mounted, newer), filepath.Join(denied, copied)} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := start(t.Context(), []string{"add-providers", "--own", mirror, mounted, denied, volume}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(volume, "machine-controllers")); err != nil || info.Mode()&0o111 != 0o111 || info.Size() == 0 {
		t.Errorf("the program is %v: %v", info, err)
	}
	for file, from := range map[string]string{name: mirror, newer: mounted, copied: filepath.Join(volume, "mirror")} {
		if at, err := filepath.EvalSymlinks(filepath.Join(volume, "mirror", file)); err != nil || at != filepath.Join(from, file) {
			t.Errorf("%s is at %s: %v; want it in %s", file, at, err, from)
		}
	}
	if err := start(t.Context(), []string{"add-providers", mirror}); err == nil || !strings.Contains(err.Error(), "MIRROR... VOLUME") {
		t.Errorf("without a volume: %v", err)
	}
}
