package inspect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

// body is a state with all that is masked, and all that is not.
const body = `{"version": 4, "terraform_version": "1.12.6", "serial": 7, "lineage": "l",
  "outputs": {
    "provider_id": {"value": "vsphere://1", "type": "string"},
    "password": {"value": "hunter22", "type": "string", "sensitive": true},
    "greeting": {"value": "say hunter22 to enter", "type": "string"},
    "empty": {"value": "", "type": "string", "sensitive": true}
  },
  "resources": [
    {"mode": "managed", "type": "vsphere_virtual_machine", "name": "this", "provider": "provider[\"registry.opentofu.org/hashicorp/vsphere\"]", "instances": [
      {"private": "cHJpdmF0ZQ==", "attributes": {
        "name": "vm-1", "num_cpus": 12345678901234567890, "moid": null, "annotation": "", "template": true,
        "extra_config": {"guestinfo.userdata": "I2Nsb3VkLWNvbmZpZw==", "plain": "yes", "marked": "very-private"},
        "disk": [{"label": "disk0", "key": "first-key"}, {"label": "disk1", "key": "second-key"}],
        "nested": [{"tokens": ["token-one", "ab"], "token_ttl": 300}],
        "copy": "very-private"},
       "sensitive_attributes": [
         [{"type": "get_attr", "value": "extra_config"}, {"type": "index", "value": {"value": "marked", "type": "string"}}],
         [{"type": "get_attr", "value": "disk"}, {"type": "index", "value": {"value": 1, "type": "number"}}, {"type": "get_attr", "value": "key"}],
         [{"type": "get_attr", "value": "not_there"}]]},
      {"deposed": "00000000", "index_key": 1, "attributes": {"name": "old"}},
      {"status": "tainted", "index_key": "a b", "attributes": {"name": "new"}}]},
    {"mode": "data", "module": "module.net", "type": "vsphere_network", "name": "all", "provider": "p", "instances": [{"attributes": {"id": "n-1"}}]},
    {"mode": "managed", "type": "terraform_data", "name": "made_with", "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": [
      {"attributes": {"id": "x", "input": {"value": {"cpu": "4", "admin": "lowly-secret"}, "type": ["object", {"cpu": "string", "admin": "string"}]}, "output": null},
       "sensitive_attributes": [[{"type": "get_attr", "value": "input"}, {"type": "get_attr", "value": "admin"}]]}]}
  ]}`

func snapshotOf(raw string) *state.Snapshot {
	s := &state.Snapshot{
		Key: state.Key{Namespace: namespace, Name: "tfstate-default-of-workers-a"}, Serial: 7, Lineage: "l",
		Meta: map[string]string{"machine": "workers-a", "module": moduleRef},
	}
	if raw != "" {
		s.Raw = []byte(raw)
	}
	return s
}

func TestState(t *testing.T) {
	for name, sensitive := range map[string]bool{"state.masked": false, "state.whole": true} {
		shown, err := NewState(snapshotOf(body), sensitive)
		if err != nil {
			t.Fatal(err)
		}
		for format, extension := range map[string]string{"table": "txt", "json": "json"} {
			t.Run(name+" as "+format, func(t *testing.T) {
				got := printing.As(t, format, shown)
				golden.Check(t, "testdata/"+name+"."+extension, got)
				for _, secret := range []string{"hunter22", "I2Nsb3VkLWNvbmZpZw==", "very-private", "second-key", "token-one", "lowly-secret"} {
					if strings.Contains(got, secret) != sensitive {
						t.Errorf("that it shows %q should be %t", secret, sensitive)
					}
				}
			})
		}
	}
	t.Run("nothing yet", func(t *testing.T) {
		shown, err := NewState(snapshotOf(""), false)
		if err != nil || len(shown.Resources) != 0 || !strings.HasSuffix(printing.As(t, "", shown), "\nOutputs\n") {
			t.Errorf("%v; it returns %+v", err, shown)
		}
	})
	t.Run("what is no state", func(t *testing.T) {
		_, err := NewState(snapshotOf(`{"resources": "hunter22"}`), false)
		if err == nil || !strings.Contains(err.Error(), "'kubectl machine state pull'") || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("it returns %v", err)
		}
	})
}

func TestMarksThatCannotBeFollowedHideMore(t *testing.T) {
	whole := map[string]any{"a": "one-secret", "b": map[string]any{"c": "two-secret", "d": json.Number("3")}, "e": []any{"three-secret"}, "f": nil}
	cases := map[string]struct {
		marks string
		want  map[string]any
	}{
		"no marks":                          {want: whole},
		"an attribute":                      {marks: `[[{"type":"get_attr","value":"a"}]]`, want: map[string]any{"a": Masked, "b": whole["b"], "e": whole["e"], "f": nil}},
		"one that is no list":               {marks: `{"a":1}`, want: map[string]any{"a": Masked, "b": Masked, "e": Masked, "f": nil}},
		"one of everything":                 {marks: `[[]]`, want: map[string]any{"a": Masked, "b": Masked, "e": Masked, "f": nil}},
		"one that begins with an index":     {marks: `[[{"type":"index","value":{"value":0,"type":"number"}}]]`, want: map[string]any{"a": Masked, "b": Masked, "e": Masked, "f": nil}},
		"into an object, of no such name":   {marks: `[[{"type":"get_attr","value":"b"},{"type":"get_attr","value":"x"}]]`, want: map[string]any{"a": whole["a"], "b": Masked, "e": whole["e"], "f": nil}},
		"into an object, by a number":       {marks: `[[{"type":"get_attr","value":"b"},{"type":"index","value":{"value":0,"type":"number"}}]]`, want: map[string]any{"a": whole["a"], "b": Masked, "e": whole["e"], "f": nil}},
		"into a list, beyond its end":       {marks: `[[{"type":"get_attr","value":"e"},{"type":"index","value":{"value":1,"type":"number"}}]]`, want: map[string]any{"a": whole["a"], "b": whole["b"], "e": Masked, "f": nil}},
		"into a list, before its start":     {marks: `[[{"type":"get_attr","value":"e"},{"type":"index","value":{"value":-1,"type":"number"}}]]`, want: map[string]any{"a": whole["a"], "b": whole["b"], "e": Masked, "f": nil}},
		"through a text":                    {marks: `[[{"type":"get_attr","value":"a"},{"type":"get_attr","value":"x"}]]`, want: map[string]any{"a": Masked, "b": whole["b"], "e": whole["e"], "f": nil}},
		"of nothing":                        {marks: `[[{"type":"get_attr","value":"f"}]]`, want: whole},
		"the same twice, and what is below": {marks: `[[{"type":"get_attr","value":"b"}],[{"type":"get_attr","value":"b"},{"type":"get_attr","value":"c"}]]`, want: map[string]any{"a": whole["a"], "b": Masked, "e": whole["e"], "f": nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, (&mask{}).attributes(whole, json.RawMessage(tc.marks))); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatsOfStates(t *testing.T) {
	shown, err := NewState(snapshotOf(body), false)
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"name":                            "machine.machine.openshift.io/workers-a\n",
		"jsonpath={.serial}":              "7",
		"custom-columns=LINEAGE:.lineage": "LINEAGE\nl\n",
	} {
		if diff := cmp.Diff(want, printing.As(t, format, shown)); diff != "" {
			t.Errorf("as %s (-want +got):\n%s", format, diff)
		}
	}
}
