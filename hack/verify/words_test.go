package verify

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNoWordComesBack(t *testing.T) {
	for _, problems := range wordsInTheRepository(t) {
		t.Error(strings.Join(problems, "\n"))
	}
}

// wordsInTheRepository returns the problems of every file that has any.
func wordsInTheRepository(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || name == "bin" || name == "dist"):
			return filepath.SkipDir
		case !entry.Type().IsRegular(), strings.HasPrefix(name, filepath.Join("hack", "verify", "words")):
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil || bytes.IndexByte(content, 0) >= 0 {
			return err
		}
		texts, err := passages(name, content)
		for _, text := range texts {
			out[name] = append(out[name], text.problems(name)...)
		}
		if out[name] == nil {
			delete(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPassages(t *testing.T) {
	cases := map[string]struct {
		file, content string
		want          []string
	}{
		"a comment of Go":                     {"a.go", "package a\n\n// F mends it.\nfunc F() {}\n", []string{`a.go:3: "mends": write fix`}},
		"a string of Go":                      {"a.go", "package a\n\nvar s = \"nobody\\ntold me\"\n", []string{`a.go:3: "told": write report, show, say, return`}},
		"a later line of a raw string":        {"a.go", "package a\n\nvar s = `one\ntwo verdicts`\n", []string{`a.go:4: "verdicts": write drift result, health result, admission result`}},
		"a part of a name in camel case":      {"a.md", "`driftVerdict`", []string{`a.md:1: "verdict": write drift result, health result, admission result`}},
		"two words together":                  {"a.go", "package a\n\n// see lookAgain\n", []string{`a.go:3: "look again": write requeueAfter`}},
		"documents, scripts and HCL as whole": {"a.tf", "x\n# an Impostor", []string{`a.tf:2: "impostor": write stub binary`}},
		"names in Go are not read":            {"a.go", "package a\n\nimport _ \"example.com/gate\"\n\ntype verdict struct {\n\tmend int `json:\"verdict\"`\n}\n", nil},
		"a word within another":               {"a.md", "intelligent, amended, investigate, desired", nil},
		"an exception":                        {"a.md", "Pods with scheduling gates, and what was `verdict`", nil},
		"other files":                         {"a.json", "told", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			texts, err := passages(tc.file, []byte(tc.content))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, text := range texts {
				got = append(got, text.problems(tc.file)...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s", diff)
			}
		})
	}
}
