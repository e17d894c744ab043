package preview

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

// golden compares a text with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update and read the change (-want +got):\n%s", diff)
	}
}

func exampleCatalog(t testing.TB) *module.Catalog {
	t.Helper()
	loaded, err := module.LoadFolders("testdata/modules")
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := module.NewCatalog(loaded...)
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

// requestsOf answers what a file asks for, and what else is in it.
func requestsOf(t testing.TB, name, content string, catalog *module.Catalog) (requests []*Request, skipped []string) {
	t.Helper()
	requests, skipped, err := Read([]File{{Name: name, Content: []byte(content)}}, Cluster{Namespace: "openshift-machine-api"}, catalog)
	if err != nil {
		t.Fatal(err)
	}
	return requests, skipped
}
