package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	sourcePodDelete      = "kind: Stage\nmetadata:\n  name: pod-delete\nspec:\n  next:\n    delete: true\n"
	sourceNodeInitialize = "kind: Stage\nmetadata:\n  name: node-initialize\nspec:\n  next:\n    statusTemplate: |\n" +
		"      {{ if . }}\n      addresses:\n      {{ end }}\n      phase: Running\n"
	sourceOther = "# kept as it is\nkind: Stage\nmetadata:\n  name: other\n"
)

func stageSource(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestStagesAreCopiedWithTheirChanges(t *testing.T) {
	source := stageSource(t, map[string]string{
		"d.yaml": sourcePodDelete, "i.yaml": sourceNodeInitialize, "o.yaml": sourceOther,
	})
	target := filepath.Join(t.TempDir(), "stages")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(target, "old.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeStages(source, target, 2500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"d.yaml": "kind: Stage\nmetadata:\n  name: pod-delete\nspec:\n  delay:\n    durationMilliseconds: 2500\n" +
			"  next:\n    delete: true\n",
		"i.yaml": strings.Replace(sourceNodeInitialize, "      addresses:\n", "", 1),
		"o.yaml": sourceOther,
	}
	files, err := stageFiles(target)
	if err != nil || len(files) != len(want)+1 || !slices.Contains(files, filepath.Join(target, unhealthyStages)) {
		t.Fatalf("copied %q (%v), want %d files and %s", files, err, len(want), unhealthyStages)
	}
	for name, wantContent := range want {
		data, err := os.ReadFile(filepath.Join(target, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decode(t, wantContent), decode(t, string(data))); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
}

func decode(t *testing.T, content string) any {
	t.Helper()
	var decoded any
	if err := yaml.Unmarshal([]byte(content), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestStagesThatAreMissingAreNamed(t *testing.T) {
	cases := map[string]struct {
		source string
		want   string
	}{
		"no folder": {source: "/nowhere",
			want: "none is called node-initialize or pod-delete; put them there with 'make tools'"},
		"one of the two": {source: stageSource(t, map[string]string{"d.yaml": sourcePodDelete}),
			want: "none is called node-initialize;"},
		"a file that isn't": {source: stageSource(t, map[string]string{"x.yaml": "{"}), want: "x.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := writeStages(tc.source, filepath.Join(t.TempDir(), "stages"), time.Second)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}
