package page

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompose(t *testing.T) {
	first, second := order[0], order[1]
	tcs := map[string]struct {
		before string
		put    []Section
		want   string
	}{
		"an empty page gets a head and the section": {
			"", []Section{{first, "\nText.\n\n"}}, head + "\n## " + first + "\n\nText.\n",
		},
		"a section takes the place of its older self, the others stay as they are": {
			"# Old head\n\nOld words.\n\n## " + first + "\n\nOne\n\n### Detail\n\n| a |\n\n## " + second + "\n\nTwo\n",
			[]Section{{second, "Two anew"}},
			head + "\n## " + first + "\n\nOne\n\n### Detail\n\n| a |\n\n## " + second + "\n\nTwo anew\n",
		},
		"a new section comes at its place": {
			"# Head\n\n## " + second + "\n\nTwo\n", []Section{{first, "One"}},
			head + "\n## " + first + "\n\nOne\n\n## " + second + "\n\nTwo\n",
		},
		"a section that nobody knows comes last": {
			"# Head\n\n## Mine\n\nMy own\n", []Section{{first, "One"}}, head + "\n## " + first + "\n\nOne\n\n## Mine\n\nMy own\n",
		},
		"nothing to put leaves the sections": {head + "\n## Mine\n\nMy own\n", nil, head + "\n## Mine\n\nMy own\n"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got := compose(tc.before, tc.put)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(got, compose(got, tc.put)); diff != "" {
				t.Errorf("a second time must change nothing: %s", diff)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	for _, text := range []string{"First.", "Second."} {
		if err := Write(file, Section{Title: order[0], Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(head+"\n## "+order[0]+"\n\nSecond.\n", string(got)); diff != "" {
		t.Error(diff)
	}
	for title, want := range map[string]string{order[0]: "Second.", order[1]: ""} {
		if text, err := Read(file, title); err != nil || text != want {
			t.Errorf("got %q, %v for %s, want %q", text, err, title, want)
		}
	}
	if err := Write(t.TempDir(), Section{}); err == nil {
		t.Error("a folder is no page")
	}
}
