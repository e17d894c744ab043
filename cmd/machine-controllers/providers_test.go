package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheManagersOwnProvidersAreAdded runs the first of the init containers. The others run its copy of the program.
func TestTheManagersOwnProvidersAreAdded(t *testing.T) {
	mirror, volume := t.TempDir(), t.TempDir()
	const name = "registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud"
	if err := os.MkdirAll(filepath.Dir(filepath.Join(mirror, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mirror, name), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := start(t.Context(), []string{"add-providers", "--own", mirror, volume}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(volume, "machine-controllers")); err != nil || info.Mode()&0o111 != 0o111 || info.Size() == 0 {
		t.Errorf("the program is %v: %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(volume, "mirror", name)); err != nil {
		t.Error(err)
	}
	if err := start(t.Context(), []string{"add-providers", mirror}); err == nil || !strings.Contains(err.Error(), "MIRROR VOLUME") {
		t.Errorf("without a volume: %v", err)
	}
}
