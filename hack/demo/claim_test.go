package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFolderWithOtherFilesIsNotTheDemos(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for range 2 { // claimed, and claimed again
		if err := claim(dir); err != nil {
			t.Fatal(err)
		}
	}
	other := t.TempDir()
	file := filepath.Join(other, "admin.kubeconfig")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := claim(other); err == nil || !strings.Contains(err.Error(), "has files that are not the demo's") {
		t.Errorf("got %v, want the folder refused", err)
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v, want the folder as it was", entries, err)
	}
}
