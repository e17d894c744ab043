package repeat_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlnode "go.yaml.in/yaml/v3"

	"github.com/machine-iac/machine-iac-operator/internal/engine/repeat"
)

const locals = `{"ports":[{"name":"a","subnets":["s","t"]},{"name":"${evil}","subnets":[]}],"trunks":[{"port":1}],"none":[],"text":"x","half":0.5,
	"labels":{"a.b/c":["l"]}}`

func TestProgramIsWrittenOut(t *testing.T) {
	cases := map[string]struct{ program, want string }{
		"nothing to repeat is left as it is": {
			program: "name: x # teach\nresources: {this: {type: a:b, properties: {each: 1}}}\n",
			want:    "name: x # teach\nresources: {this: {type: a:b, properties: {each: 1}}}\n",
		},
		"a resource for each entry, and references to one": {
			program: "resources:\n  port:\n    each: {p: '${locals.ports}'}\n    type: a:Port\n    properties:\n      name: port ${locals.ports[p].name} costs $${p}\n" +
				"  trunk:\n    each: {t: '${locals.trunks}'}\n    type: a:Trunk\n    properties:\n      port: ${port[locals.trunks[t].port].id}\n  this:\n    type: a:Server\n    properties:\n      first: ${port[0].id}\n",
			want: "resources:\n    port0:\n        type: a:Port\n        properties:\n            name: port ${locals.ports[0].name} costs $${p}\n" +
				"    port1:\n        type: a:Port\n        properties:\n            name: port ${locals.ports[1].name} costs $${p}\n" +
				"    trunk0:\n        type: a:Trunk\n        properties:\n            port: ${port1.id}\n    this:\n        type: a:Server\n        properties:\n            first: ${port0.id}\n",
		},
		"a resource for none": {
			program: "resources:\n  port:\n    each: {p: '${locals.none}'}\n    type: a:Port\n  this:\n    type: a:Server\n",
			want:    "resources:\n    this:\n        type: a:Server\n",
		},
		"a list for each entry, one inside of the other": {
			program: "outputs:\n  all:\n    - first\n    - fn::each:\n        p: ${locals.ports}\n        make: {subnets: {fn::each: {s: '${locals.ports[p].subnets}', make: '${locals.ports[p].subnets[s]}'}}}\n    - last\n",
			want:    "outputs:\n    all:\n        - first\n        - {subnets: ['${locals.ports[0].subnets[0]}', '${locals.ports[0].subnets[1]}']}\n        - {subnets: []}\n        - last\n",
		},
		"a variable for each entry": {
			program: "variables:\n  found:\n    fn::each:\n      p: ${locals.ports}\n      make:\n        fn::invoke: {function: find}\noutputs:\n  second: ${found[1].ids[0]}\n  other: ${unknown[0]}\n",
			want:    "variables:\n    found0:\n        fn::invoke: {function: find}\n    found1:\n        fn::invoke: {function: find}\noutputs:\n    second: ${found1.ids[0]}\n    other: ${unknown[0]}\n",
		},
		"a list by a key with dots": {
			program: "outputs:\n  all: {fn::each: {l: '${locals.labels[\"a.b/c\"]}', make: x}}\n",
			want:    "outputs:\n    all:\n        - x\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := repeat.Program([]byte(tc.program), []byte(locals))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("the program differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeWrittenOutIsRefused(t *testing.T) {
	each := func(list, text string) string {
		return "outputs:\n  all: {fn::each: {p: '${" + list + "}', make: '" + text + "'}}\n"
	}
	cases := map[string]struct{ program, want string }{
		"a list that is none":          {each("locals.text", ""), "outputs.all: locals.text is not a list that is known before a run; compute one in locals.tf"},
		"a list that is not there":     {each("locals.ports[2].subnets", ""), "locals.ports[2] does not exist"},
		"an index that is no number":   {each("locals.ports", "${locals.ports[locals.text]}"), "locals.text is not a whole number"},
		"an index that is half":        {each("locals.ports", "${locals.ports[locals.half]}"), "locals.half is not a whole number"},
		"an index that nothing is":     {each("locals.ports", "${locals.ports[q]}"), "[q] is neither a number, nor the name of an enclosing each, nor in locals"},
		"two loops of a name":          {"outputs: {a: {fn::each: {p: '${locals.ports}', make: {fn::each: {p: '${locals.ports}', make: x}}}}}\n", "an outer each has the name p too"},
		"one too many":                 {"resources: {port: {each: {p: '${locals.ports}'}, type: a:b}}\noutputs: {a: '${port[2].id}'}\n", "${port[2].id} refers to index 2 of port, which has 2 copies"},
		"all of them":                  {"resources: {port: {each: {p: '${locals.ports}'}, type: a:b}}\noutputs: {a: '${port.id}'}\n", "refer to one of them, as ${port[NAME]}"},
		"a loop over something else":   {each("provider_spec.ports", ""), "has an each that does not refer to locals"},
		"a function without a body":    {"outputs: {all: {fn::each: {p: '${locals.ports}'}}}\n", "fn::each lacks make"},
		"a variable without a body":    {"variables: {all: {fn::each: {p: '${locals.ports}'}}}\n", "variables.all: fn::each lacks make"},
		"more than a program can have": {each("locals.many", ""), "more than 2000 entries"},
	}
	many := strings.TrimSuffix(locals, "}") + `,"many":[` + strings.Repeat("0,", 2000) + "0]}"
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := repeat.Program([]byte(tc.program), []byte(many))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it returns %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFaultsAreFoundWithoutLocals(t *testing.T) {
	cases := map[string]struct{ program, want string }{
		"none":                     {"resources: {port: {each: {p: '${locals.ports}'}, type: a:b}, support1: {type: a:b}}\n", ""},
		"a name that another has":  {"resources: {port: {each: {p: '${locals.ports}'}, type: a:b}, port1: {type: a:b}}\n", "resources.port: is repeated, and one of its copies is called port1"},
		"no object":                {"resources: {port: {each: '${locals.ports}', type: a:b}}\n", "resources.port: has an each that is not an object"},
		"no list":                  {"resources: {port: {each: {}, type: a:b}}\n", "resources.port: has an each without a list"},
		"two lists":                {"resources: {port: {each: {p: '${locals.ports}', q: '${locals.ports}'}, type: a:b}}\n", "an each with the names p and q"},
		"a name that is none":      {"resources: {port: {each: {P: '${locals.ports}'}, type: a:b}}\n", `an each with the name "P"`},
		"a function beside others": {"outputs: {a: {fn::each: {p: '${locals.ports}', make: x}, b: 1}}\n", "outputs.a: has fn::each beside other fields"},
		"a function without make":  {"outputs: {a: [{fn::each: {p: '${locals.ports}'}}]}\n", "outputs.a: has fn::each without make"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var document yamlnode.Node
			if err := yamlnode.Unmarshal([]byte(tc.program), &document); err != nil {
				t.Fatal(err)
			}
			found := repeat.Faults(&document)
			if tc.want == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 || !strings.Contains(found[0].What+": "+found[0].Problem, tc.want) || found[0].Line == 0 {
				t.Errorf("found are %+v, want %q", found, tc.want)
			}
		})
	}
}
