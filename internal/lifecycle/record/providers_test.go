package record

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProvidersAfter(t *testing.T) {
	cases := map[string]struct {
		before  *Providers
		used    string
		applied bool
		want    Providers
		changed bool
	}{
		"the first applied run":                {used: "a", applied: true, want: Providers{Applied: "a"}},
		"a check of what was applied unknown":  {used: "a"},
		"the same providers":                   {before: &Providers{Applied: "a"}, used: "a", want: Providers{Applied: "a"}},
		"others, in a check":                   {before: &Providers{Applied: "a"}, used: "b", want: Providers{Applied: "a", Seen: "b"}, changed: true},
		"others, in the next check again":      {before: &Providers{Applied: "a", Seen: "b"}, used: "b", want: Providers{Applied: "a", Seen: "b"}},
		"a third binary":                       {before: &Providers{Applied: "a", Seen: "b"}, used: "c", want: Providers{Applied: "a", Seen: "c"}, changed: true},
		"others, in a run that applies":        {before: &Providers{Applied: "a"}, used: "b", applied: true, want: Providers{Applied: "b"}, changed: true},
		"those that were seen, which apply":    {before: &Providers{Applied: "a", Seen: "b"}, used: "b", applied: true, want: Providers{Applied: "b"}},
		"the first ones again":                 {before: &Providers{Applied: "a", Seen: "b"}, used: "a", want: Providers{Applied: "a"}},
		"an engine that does not know":         {before: &Providers{Applied: "a", Seen: "b"}, applied: true, want: Providers{Applied: "a", Seen: "b"}},
		"an engine that does not know, before": {applied: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, changed := tc.before.After(tc.used, tc.applied)
			if diff := cmp.Diff(tc.want, got); diff != "" || changed != tc.changed {
				t.Errorf("changed is %t, want %t; (-want +got):\n%s", changed, tc.changed, diff)
			}
			if shown := got.Changed(); (shown != "") != (got.Seen != "") || !strings.Contains(shown, got.Seen) {
				t.Errorf("got the message %q", shown)
			}
		})
	}
	if none := (*Providers)(nil); none.Changed() != "" {
		t.Error("no providers have changed")
	}
}
