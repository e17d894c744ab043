package install_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// rulesIn calls a function with all RBAC rules in a document, such as a role or a bundle's copy.
func rulesIn(value any, each func(rule map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		if _, isRule := value["verbs"].([]any); isRule {
			each(value)
		}
		for _, inner := range value {
			rulesIn(inner, each)
		}
	case []any:
		for _, inner := range value {
			rulesIn(inner, each)
		}
	}
}

// wildcards returns the fields of a rule that allow everything.
func wildcards(rule map[string]any) []string {
	var found []string
	for _, field := range []string{"apiGroups", "resources", "verbs", "nonResourceURLs"} {
		values, _ := rule[field].([]any)
		if slices.ContainsFunc(values, func(value any) bool { return strings.Contains(fmt.Sprint(value), "*") }) {
			found = append(found, field)
		}
	}
	return found
}

func TestNothingIsAllowedByAWildcard(t *testing.T) {
	count := 0
	err := filepath.WalkDir(filepath.Join(root, "install"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(file)
		// a chart template; other tests compare it with its source
		if err != nil || bytes.Contains(content, []byte("{{")) {
			return err
		}
		for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
			var document any
			if err := documents.Decode(&document); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			rulesIn(document, func(rule map[string]any) {
				count++
				if found := wildcards(rule); len(found) > 0 {
					t.Errorf("%s: a rule has wildcards in %v: %v; name what is needed", file, found, rule)
				}
			})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 40 {
		t.Errorf("only %d rules were found", count)
	}
	if got := wildcards(map[string]any{
		"apiGroups": []any{""}, "resources": []any{"pods/*"}, "verbs": []any{"get"},
	}); !slices.Equal(got, []string{"resources"}) {
		t.Errorf("a wildcard is found in %v", got)
	}
}
