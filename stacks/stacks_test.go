package stacks_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

// folders answers the names of the stacks of this repository.
func folders(t *testing.T) []string {
	t.Helper()
	descriptions, err := filepath.Glob(filepath.Join("*", "module.yaml"))
	if err != nil || len(descriptions) == 0 {
		t.Fatalf("looking for stacks: found %d, %v", len(descriptions), err)
	}
	names := make([]string, 0, len(descriptions))
	for _, description := range descriptions {
		names = append(names, filepath.Dir(description))
	}
	return names
}

func TestEveryStackIsBuiltIn(t *testing.T) {
	entries, err := fs.ReadDir(stacks.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	embedded := make([]string, 0, len(entries))
	for _, entry := range entries {
		embedded = append(embedded, entry.Name())
	}
	for _, name := range folders(t) {
		if !slices.Contains(embedded, name) {
			t.Errorf("the folder %s is a stack, but embed.go does not have it: add all:%[1]s", name)
		}
	}
}

// A stack stands alone, so it repeats the variables of the module that it is the counterpart of.
func TestHollowNodesTakeTheSameValuesOfBothEngines(t *testing.T) {
	description := regexp.MustCompile(`(?m)^  description = .*\n`)
	variables := func(from fs.FS) string {
		content, err := fs.ReadFile(from, "kubemark/variables.tf")
		if err != nil {
			t.Fatal(err)
		}
		return description.ReplaceAllString(string(content), "")
	}
	if diff := cmp.Diff(variables(modules.FS), variables(stacks.FS)); diff != "" {
		t.Errorf("types and validations differ (-module +stack):\n%s", diff)
	}
}
