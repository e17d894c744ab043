package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestNotesSayWhatRunTheOutputIsOf(t *testing.T) {
	last := &LastRun{Operation: "create", Result: "Failed", Began: ago(time.Minute), Ended: metav1.NewTime(now.Add(-50 * time.Second)), Message: "no room\n\x1b[2Jat all"}
	cases := map[string]struct {
		output EngineOutput
		want   []string
	}{
		"a run that failed": {output: EngineOutput{Text: "x", Last: last}, want: []string{"create, Failed, began 2026-03-01T11:59:00Z, took 10s", `no room \u001b[2Jat all`}},
		"a run that goes on": {
			output: EngineOutput{Text: "x", Lock: &state.Lock{Operation: "destroy", Since: now.Add(-5 * time.Second)}},
			want:   []string{"a destroy goes on, for 5s now; what follows is of the run before"},
		},
		"a text that is withheld": {output: EngineOutput{Text: "x", Withheld: "y"}, want: []string{
			"messages that may hold values of sensitive inputs are withheld; --withheld prints them, without the strings that are known to be secret",
		}},
		"no text": {want: []string{"the engine's output is not kept: the run ended before there was any, or there was no room beside the inputs"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.output.Notes(now)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutputThatCannotBeRead(t *testing.T) {
	for name, snapshot := range map[string]*state.Snapshot{
		"no gzip":            {Attachments: state.Attachments{"output": []byte("text")}},
		"half a gzip":        {Attachments: state.Attachments{"output": []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x4a")}},
		"an edited last run": {Meta: map[string]string{"last-run": "{"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newOutput(snapshot); err == nil || !strings.HasPrefix(err.Error(), "reading ") {
				t.Errorf("it returns %v", err)
			}
		})
	}
}
