package offline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlnode "go.yaml.in/yaml/v3"
)

func TestReplaceUnknown(t *testing.T) {
	variables := map[string]marked{
		"machine": {value: map[string]any{"name": "n", "uid": nil, "labels": map[string]any{"a.b/c": "x", `q"`: "y"}},
			unknown: map[string]any{"uid": true}},
		"locals": {
			value: map[string]any{"list": []any{map[string]any{"type": "T", "address": nil}, "s"},
				"odd": map[string]any{"fn::x": nil}, "all": nil},
			unknown: map[string]any{"list": []any{map[string]any{"address": true}},
				"odd": map[string]any{"fn::x": true}, "all": true},
		},
	}
	cases := map[string]struct{ given, want string }{
		"what is known stays a reference":        {given: `${machine.name}`, want: `${machine.name}`},
		"what is not known comes from elsewhere": {given: `${machine.uid}`, want: `"${offline.value}"`},
		"in quotes": {given: `${machine["uid"]}`,
			want: `"${offline.value}"`},
		"the root in quotes": {given: `${["machine"].uid}`,
			want: `"${offline.value}"`},
		"within a text": {given: `a-${machine.uid}-${machine.name}$`,
			want: `a-${offline.value}-${machine.name}$`},
		"a key with a quote": {given: `'${machine.labels["q\""]}'`,
			want: `'${machine.labels["q\""]}'`},
		"what is below something unknown": {given: `${locals.all.deep[0]}`,
			want: `"${offline.value}"`},
		"an entry of a list": {given: `${locals.list[0].address}`,
			want: `"${offline.value}"`},
		"a known entry of a list": {given: `${locals.list[0].type}`,
			want: `${locals.list[0].type}`},
		"a value of which some is unknown": {given: `${locals.list}`,
			want: `- {address: "${offline.value}", type: '${locals.list[0]["type"]}'}` + "\n- \"${locals.list[1]}\""},
		"such a value within a text":      {given: `x ${locals.list}`, want: `x ${offline.value}`},
		"a key that could mean something": {given: `${locals.odd}`, want: `"${offline.value}"`},
		"a dollar is none":                {given: `$${machine.uid}`, want: `$${machine.uid}`},
		"a dollar before one":             {given: `$$${machine.uid}`, want: `$$${offline.value}`},
		"other references": {
			given: `${this.uid} ${machine.other} ${locals.list[7]}`,
			want:  `${this.uid} ${machine.other} ${locals.list[7]}`},
		"what does not end":           {given: `${machine.uid`, want: `${machine.uid`},
		"a bracket that does not end": {given: `'${machine["uid}'`, want: `'${machine["uid}'`},
		"within lists and maps": {given: "a: [{b: \"${machine.uid}\"}]",
			want: `a: [{b: "${offline.value}"}]`},
		"a variable whose name begins like that of an unknown": {given: `${machines.uid}`, want: `${machines.uid}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got, want yamlnode.Node
			if err := yamlnode.Unmarshal([]byte(tc.given), &got); err != nil {
				t.Fatal(err)
			}
			if err := yamlnode.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			replaceUnknown(&got, variables)
			if diff := cmp.Diff(valueOf(t, &want), valueOf(t, &got)); diff != "" {
				t.Errorf("what is written (-want +got):\n%s", diff)
			}
		})
	}
}

func valueOf(t *testing.T, node *yamlnode.Node) any {
	t.Helper()
	raw, err := yamlnode.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yamlnode.NewDecoder(strings.NewReader(string(raw))).Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
