package preview

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

func TestLeaves(t *testing.T) {
	object := func(pairs ...any) map[string]any {
		found := map[string]any{}
		for n := 0; n < len(pairs); n += 2 {
			found[pairs[n].(string)] = pairs[n+1]
		}
		return found
	}
	cases := map[string]struct {
		values offline.Values
		want   string
	}{
		"what is known": {offline.Values{After: object("a", "x", "b", 1, "c", true, "d", "")},
			`a="x" b=1 c=true d=""`},
		"null and empty collections": {offline.Values{After: object("a", nil, "b", object(), "c", []any{}),
			Unknown: object("b", object(), "c", []any{})}, ``},
		"what is unknown": {offline.Values{After: object(), Unknown: object("a", true, "b", false)},
			`a=(known after apply)`},
		"what is unknown in a list": {offline.Values{After: object("l", []any{object("a", "x")}),
			Unknown: object("l", []any{object("b", true), true})},
			`l[0].a="x" l[0].b=(known after apply) l[1]=(known after apply)`},
		"what is unknown in what is null": {offline.Values{After: object("a", nil),
			Unknown: object("a", object("b", true))}, `a.b=(known after apply)`},
		"what is sensitive": {offline.Values{After: object("a", "x"), Sensitive: object("a", true)},
			`a=(sensitive)`},
		"what is sensitive and unknown": {offline.Values{After: object(), Unknown: object("a", true),
			Sensitive: object("a", true)}, `a=(sensitive)`},
		"what is sensitive and null": {offline.Values{After: object("a", nil), Sensitive: object("a", true)}, ``},
		"all of a map that is sensitive": {offline.Values{After: object("a", object("b", "x")),
			Sensitive: object("a", true)}, `a=(sensitive)`},
		"names that are no identifiers": {offline.Values{After: object("a", object("b.c/d", 1, "", 2, "e\"", 3))},
			`a[""]=2 a["b.c/d"]=1 a["e\""]=3`},
		"all of it is unknown":           {offline.Values{Unknown: true}, `=(known after apply)`},
		"text that a browser would read": {offline.Values{After: object("a", "<b>&\n\x1b")}, `a="<b>&\n\u001b"`},
		"text that looks like an escape": {offline.Values{After: object("a", `\u003c`)}, `a="\\u003c"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range leavesOf(tc.values) {
				got = append(got, one.path+"="+one.value.Text())
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("it has\n%s\nwant\n%s", text, tc.want)
			}
		})
	}
}
