package plan

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
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
