package driver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheCRDsAreThoseOfMCM(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gardener/machine-controller-manager").Output()
	if err != nil {
		t.Fatal(err)
	}
	released, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "kubernetes", "crds", "*.yaml"))
	if err != nil || len(released) != 4 {
		t.Fatalf("the module has the CRDs %q: %v", released, err)
	}
	for _, file := range released {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join("..", "..", "install", "gardener", "crds", filepath.Base(file))
		if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not that of the module (%v): copy %s", copied, err, file)
		}
	}
}
