package plan

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/manifest"
)

func TestWhatNoFlagSetsIsTakenFromTheCluster(t *testing.T) {
	configured := module.ClusterValues{module.ValueClusterID: "said", module.ValueRegion: "said", module.ValueProject: "said"}
	for name, tc := range map[string]struct {
		id     string
		given  map[string]string
		wantID string
		want   module.ClusterValues
	}{
		"no flags": {
			wantID: "said", want: module.ClusterValues{module.ValueClusterID: "said", module.ValueRegion: "said", module.ValueProject: "said"},
		},
		"flags": {
			id: "given", given: map[string]string{module.ValueRegion: "given"}, wantID: "given",
			want: module.ClusterValues{module.ValueClusterID: "given", module.ValueRegion: "given", module.ValueProject: "said"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := planOptions{clusterValues: tc.given}
			o.cluster.ID = tc.id
			o.take(configured)
			if diff := cmp.Diff(tc.want, o.cluster.ClusterValues); diff != "" || o.cluster.ID != tc.wantID {
				t.Errorf("the cluster is %q; cluster values (-want +got):\n%s", o.cluster.ID, diff)
			}
		})
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if !inColour(terminal) || inColour(null) || inColour(&strings.Builder{}) {
		t.Errorf("a terminal is one: %t, a device is one: %t", inColour(terminal), inColour(null))
	}
	t.Setenv("TERM", "dumb")
	if inColour(terminal) {
		t.Error("a dumb terminal has no colours")
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	if inColour(terminal) {
		t.Error("NO_COLOR is for all programs")
	}
}

// TestWhatIsReadQuicklyIsWhatAllModulesGive compares requests for which only the modules are loaded that serve them.
func TestWhatIsReadQuicklyIsWhatAllModulesGive(t *testing.T) {
	var all []manifest.File
	for _, pattern := range []string{"modules/*/examples/machineset.yaml", "stacks/*/examples/machineset.yaml"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("there are no examples: %v, %v", paths, err)
		}
		read, err := manifest.ReadFiles(paths, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, read...)
	}
	o := planOptions{cluster: manifest.Cluster{ID: "demo"}}
	catalog, err := o.catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		object, err := yaml.YAMLToJSON(file.Content)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []manifest.File{file, {Name: file.Name, Content: object}} {
			want, err := o.requests([]manifest.File{one}, catalog, io.Discard)
			if err != nil {
				t.Fatalf("%s: %v", one.Name, err)
			}
			got := o.quickly([]manifest.File{one}, io.Discard)
			if len(got) != len(want) {
				t.Errorf("%s: %d requests, want %d", one.Name, len(got), len(want))
				continue
			}
			for i := range want {
				if got[i].Module.Reference() != want[i].Module.Reference() || got[i].Key() != want[i].Key() {
					t.Errorf("%s is planned by %s, want %s", one.Name, got[i].Module.Reference(), want[i].Module.Reference())
				}
			}
		}
	}
	for name, other := range map[string]struct {
		options planOptions
		content string
	}{
		"a kind that nobody serves":       {o, "kind: MachineSet\n"},
		"a second module, of a user":      {planOptions{moduleDirs: []string{"x"}}, string(all[0].Content)},
		"one that is fetched":             {planOptions{moduleSources: []string{"x"}}, string(all[0].Content)},
		"one of two that nobody serves":   {o, string(all[0].Content) + "\n---\n" + strings.ReplaceAll(string(all[0].Content), "ProviderConfig", "Other")},
		"what is no manifest of anything": {o, "kind: [\n"},
	} {
		if got := other.options.quickly([]manifest.File{{Name: "x.yaml", Content: []byte(other.content)}}, io.Discard); len(got) > 0 {
			t.Errorf("%s: %d requests, want none", name, len(got))
		}
	}
}
