package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

func TestDifferences(t *testing.T) {
	type object = map[string]any
	cases := map[string]struct {
		values offline.Values
		forces []any
		want   []string
	}{
		"what is equal is left out": {values: offline.Values{Before: object{"a": 1, "b": []any{"x"}},
			After: object{"a": 1, "b": []any{"x"}}}},
		"null and nothing are equal": {values: offline.Values{Before: object{"a": nil},
			After: object{"a": []any{}}}},
		"what changes": {values: offline.Values{Before: object{"a": 1}, After: object{"a": 2}},
			want: []string{"update a 1 2"}},
		"what comes, and what goes": {values: offline.Values{Before: object{"a": 1}, After: object{"b": 2}},
			want: []string{"delete a 1 null", "create b  2"}},
		"what is not known": {values: offline.Values{Before: object{"a": 1}, After: object{},
			Unknown: object{"a": true}}, want: []string{"update a 1 (known after apply)"}},
		"what is in a list": {values: offline.Values{Before: object{"a": []any{object{"b": 1}}},
			After: object{"a": []any{object{"b": 2}}}}, want: []string{"update a[0].b 1 2"}},
		"a secret that stays": {values: offline.Values{Before: object{"a": "s"}, After: object{"a": "s"},
			Sensitive: object{"a": true}, SensitiveBefore: object{"a": true}}},
		"a secret that changes": {values: offline.Values{Before: object{"a": "s"}, After: object{"a": "t"},
			Sensitive: object{"a": true}, SensitiveBefore: object{"a": true}},
			want: []string{"update a (sensitive) (sensitive)"}},
		"a secret that is not known": {values: offline.Values{Before: object{"a": "s"}, After: object{},
			Unknown: object{"a": true}, Sensitive: object{"a": true}, SensitiveBefore: object{"a": true}},
			want: []string{"update a (sensitive) (sensitive)"}},
		"what forces a replacement": {values: offline.Values{Before: object{"a": 1, "ab": 1},
			After: object{"a": 2, "ab": 2}}, forces: []any{[]any{"a"}},
			want: []string{"update a 1 2 forces", "update ab 1 2"}},
		"lines of a text that change": {values: offline.Values{Before: object{"a": "1\n2\n3\n"},
			After: object{"a": "1\n4\n3\n5\n"}}, want: []string{`update a "1\n2\n3\n" "1\n4\n3\n5\n"`, "- 2", "+ 4",
			"+ 5"}},
		"what is inside of what forces": {values: offline.Values{Before: object{"a": []any{1}},
			After: object{"a": []any{2}}}, forces: []any{[]any{"a"}}, want: []string{"update a[0] 1 2 forces"}},
		"what is around what forces": {values: offline.Values{Before: object{"a": []any{1}},
			After: object{"a": []any{2}}}, forces: []any{[]any{"a", 0, "b"}}, want: []string{"update a[0] 1 2 forces"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range attributesOf(offline.Resource{Action: engine.ActionUpdate, Values: tc.values,
				Forces: tc.forces}) {
				before := ""
				if one.Before != nil {
					before = one.Before.Text()
				}
				line := strings.Join([]string{string(one.Action), one.Path, before, one.Text()}, " ")
				if one.Forces {
					line += " forces"
				}
				got = append(got, line)
				if one.Before != nil {
					got = append(got, lineDiff(*one.Before, one.Value)...)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	resources := []Resource{
		{Address: "server.this", Attributes: []Attribute{
			{Path: "disks[0].size", Action: engine.ActionUpdate}, {Path: "disks[1].size", Action: engine.ActionUpdate},
			{Path: "name", Action: engine.ActionNoOp},
			{Path: "tags.team", Action: engine.ActionCreate},
		}},
		{Address: "port.this"},
	}
	if diff := cmp.Diff(map[string][]string{"server.this": {"disks", "tags"}, "port.this": nil},
		Names(resources)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
