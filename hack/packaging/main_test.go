package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func TestPackagesAreThoseOfInstallKubernetes(t *testing.T) {
	if err := run([]string{"generate", "-check", root}); err != nil {
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
	for name, content := range map[string]string{"a.yaml": "b\n", "old.yaml": fmt.Sprintf(header, single), "own.yaml": "c\n"} {
		if err := os.WriteFile(filepath.Join(folder, "install", "helm", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := made.compare(folder)
	if err == nil || !strings.Contains(err.Error(), "a.yaml is out of date") || !strings.Contains(err.Error(), "old.yaml is not generated any more") || strings.Contains(err.Error(), "own.yaml") {
		t.Errorf("comparing: %v", err)
	}
	if err := errors.Join(made.write(folder), made.compare(folder)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "install", "helm", "own.yaml")); err != nil {
		t.Errorf("a file that is written by hand is removed: %v", err)
	}
}
