package tofu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

func TestTheOutputOfAnEngineIsPassedOn(t *testing.T) {
	cases := map[string]struct {
		written string
		want    []string
	}{
		"a message with its time": {
			written: `{"@level":"info","@message":"x_vm.this: Creating...","@timestamp":"2026-03-01T13:00:00.123456+01:00","type":"apply_start"}`,
			want:    []string{"2026-03-01T12:00:00Z x_vm.this: Creating..."},
		},
		"a message without one": {written: `{"@level":"info","@message":"Plan: 1 to add","type":"change_summary"}`, want: []string{"Plan: 1 to add"}},
		"a message with a secret": {
			written: `{"@level":"info","@message":"x_vm.this: password=hunter22","@timestamp":"soon","type":"apply_start"}`, want: []string{"x_vm.this: password=(sensitive)"},
		},
		"an error with all that is known of it": {
			written: `{"@level":"error","@message":"Error: No room","type":"diagnostic","diagnostic":{"severity":"error","summary":"No room","detail":"The store is full.\n\nhunter22 said so.",` +
				`"address":"x_vm.this","range":{"filename":"main.tf","start":{"line":7}},"snippet":{"context":"resource \"x_vm\" \"this\"","code":"tags = var.tags","values":[]}}}`,
			want: []string{"Error: No room\n    with x_vm.this, on main.tf line 7, in resource \"x_vm\" \"this\"\n    The store is full.\n    \n    (sensitive) said so."},
		},
		"a warning that says little":                   {written: `{"@level":"warn","@message":"x","type":"diagnostic","diagnostic":{"severity":"warning","summary":"Old"}}`, want: []string{"Warning: Old"}},
		"what is no message":                           {written: "panic: hunter22", want: []string{"panic: (sensitive)"}},
		"what is for developers, which may be a state": {written: `{"@level":"info","@message":"dump","type":"log","state":{"version":4}}`},
		"a message without an end": {
			written: `{"@level":"info","@message":"` + strings.Repeat("ä", 8<<10) + `","type":"version"}`, want: []string{strings.Repeat("ä", 4<<10-2) + "..."},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			s := newStream(redact.New([]string{"hunter22"}), nil)
			s.output = func(text string) { got = append(got, text) }
			write(t, s, tc.written+"\n")
			s.finish()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the output (-want +got):\n%s", diff)
			}
		})
	}
}
