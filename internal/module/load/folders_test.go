package load_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// lay writes a module into a folder.
func lay(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoadFolders(t *testing.T) {
	parent := t.TempDir()
	lay(t, filepath.Join(parent, "example"), moduletest.Module())
	for name, folder := range map[string]string{"a module": filepath.Join(parent, "example"), "a folder of modules": parent} {
		t.Run(name, func(t *testing.T) {
			loaded, err := load.Folders(folder)
			if err != nil || len(loaded) != 1 || loaded[0].Reference() != moduletest.Load(t).Reference() {
				t.Errorf("got %v, %v; want the one module, with the digest that it has anywhere", loaded, err)
			}
		})
	}
}

func TestLoadFoldersNamesEveryFolderThatIsNone(t *testing.T) {
	parent := t.TempDir()
	empty, renamed, linked := filepath.Join(parent, "empty"), filepath.Join(parent, "renamed"), filepath.Join(parent, "linked")
	if err := os.MkdirAll(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	lay(t, renamed, moduletest.Module())
	outside := moduletest.Module()
	delete(outside, "main.tf")
	lay(t, filepath.Join(linked, "example"), outside)
	if err := os.Symlink(filepath.Join(renamed, "main.tf"), filepath.Join(linked, "example", "main.tf")); err != nil {
		t.Fatal(err)
	}
	_, err := load.Folders(empty, renamed, linked, filepath.Join(parent, "absent"))
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{
		empty + ": it contains neither module.yaml nor the folder of a module",
		`metadata.name is "example" in the folder renamed`,
		"main.tf is not a regular file",
		filepath.Join(parent, "absent") + ": open",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in\n%v", want, err)
		}
	}
}
