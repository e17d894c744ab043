package module_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	mine   = "5f0c3c4e-1111-4222-8333-444455556666"
	theirs = "5f0c3c4e-1111-4222-8333-444455556667"
)

func identified(t *testing.T) module.Identities {
	t.Helper()
	identities, faults := module.NewIdentities([]v1alpha1.ResourceIdentity{
		{Type: "vm", MachineUID: v1alpha1.IdentityField{Path: []string{"tags", "uid"}}, Installation: &v1alpha1.IdentityField{Path: []string{"tags", "installation"}}},
		{Type: "port", MachineUID: v1alpha1.IdentityField{Path: []string{"description"}, Pattern: `(?:.* )?Machine ([0-9a-f-]+)`}},
		{Type: "acme:index/node:Node", MachineUID: v1alpha1.IdentityField{Path: []string{"yaml", "metadata", "labels", "uid"}}},
	})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return identities
}

func TestAnObjectBelongsToTheMachineWhoseUIDItCarries(t *testing.T) {
	own := `{"id":"i-1","tags":{"uid":"` + mine + `"}}`
	for name, tc := range map[string]struct {
		objects map[string]string
		foreign string
	}{
		"the instance":                                {map[string]string{"vm.this": own}, ""},
		"the instance with a count":                   {map[string]string{"vm.this[0]": own}, ""},
		"the UID in another place":                    {map[string]string{"vm.this": `{"name":"` + mine + `","tags":{"uid":"x"}}`}, "vm.this"},
		"the UID with more around it":                 {map[string]string{"vm.this": `{"tags":{"uid":"` + mine + ` "}}`}, "vm.this"},
		"another Machine's":                           {map[string]string{"vm.this": `{"tags":{"uid":"` + theirs + `"}}`}, "vm.this"},
		"no UID":                                      {map[string]string{"vm.this": `{}`}, "vm.this"},
		"no JSON":                                     {map[string]string{"vm.this": `{`}, "vm.this"},
		"a part of a text":                            {map[string]string{"vm.this": own, "port.a": `{"description":"mine. Machine ` + mine + `"}`}, ""},
		"the UID of another at the end":               {map[string]string{"vm.this": own, "port.a": `{"description":"Machine ` + mine + ` Machine ` + theirs + `"}`}, "port.a"},
		"a text in YAML":                              {map[string]string{"acme:index/node:Node.this": `{"yaml":"metadata:\n  labels:\n    uid: ` + mine + `\n"}`}, ""},
		"a text in YAML of another":                   {map[string]string{"acme:index/node:Node.this": `{"yaml":"metadata: {labels: {uid: x}}\n# ` + mine + `"}`}, "acme:index/node:Node.this"},
		"a text that is no YAML":                      {map[string]string{"acme:index/node:Node.this": `{"yaml":"{` + mine + `"}`}, "acme:index/node:Node.this"},
		"an association refers to it":                 {map[string]string{"vm.this": own, "link.a": `{"id":"x","vm_id":"i-1"}`}, ""},
		"and so does a list":                          {map[string]string{"vm.this": own, "link.a": `{"members":["i-0","i-1"]}`}, ""},
		"an association refers to another":            {map[string]string{"vm.this": own, "link.a": `{"id":"i-1","vm_id":"i-2","uid":"` + mine + `"}`}, "link.a"},
		"an association refers to what the state has": {map[string]string{"link.a": `{"port_id":"p-9"}`}, ""},
		"an association refers to what is shared":     {map[string]string{"link.a": `{"group_id":"g-1"}`}, "link.a"},
		"an association alone":                        {map[string]string{"link.a": `{"vm_id":"i-1"}`}, "link.a"},
		"the ID as a bridge names it":                 {map[string]string{"acme:index/node:Node.this": `{"nodeId":"n-1","yaml":"metadata: {labels: {uid: ` + mine + `}}"}`, "link.a": `{"node":"n-1"}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := map[string]json.RawMessage{}
			for address, object := range tc.objects {
				objects[address] = json.RawMessage(object)
			}
			err := identified(t).Check(objects, map[string]json.RawMessage{
				"port.known":   json.RawMessage(`{"id":"p-9","description":"Machine ` + mine + `"}`),
				"group.shared": json.RawMessage(`{"id":"g-1","members":["` + mine + `"]}`),
			}, mine)
			foreign, _ := errors.AsType[*module.ForeignError](err)
			if got := addressOf(foreign); got != tc.foreign || (err == nil) != (tc.foreign == "") {
				t.Errorf("got %v, want a refusal of %q", err, tc.foreign)
			}
		})
	}
	if identified(t).Check(map[string]json.RawMessage{"vm.this": json.RawMessage(`{"tags":{"uid":""}}`)}, nil, "") == nil {
		t.Error("without a UID, anything is the Machine's")
	}
}

func addressOf(err *module.ForeignError) string {
	if err == nil {
		return ""
	}
	return err.Address
}

func TestAnObjectNamesItsInstallation(t *testing.T) {
	owner, known := identified(t).OwnerOf("vm.this", []byte(`{"tags":{"uid":"a","installation":"b"}}`))
	if want := (module.Owner{MachineUID: "a", Installation: "b"}); owner != want || !known {
		t.Errorf("got %+v, %t", owner, known)
	}
	if _, known := identified(t).OwnerOf("link.this", []byte(`{}`)); known {
		t.Error("a type without an identity is known")
	}
}

func TestFaultsOfIdentities(t *testing.T) {
	path := []string{"a"}
	for name, one := range map[string][]v1alpha1.ResourceIdentity{
		"no type":              {{MachineUID: v1alpha1.IdentityField{Path: path}}},
		"no path":              {{Type: "vm"}},
		"an empty step":        {{Type: "vm", MachineUID: v1alpha1.IdentityField{Path: []string{""}}}},
		"no expression":        {{Type: "vm", MachineUID: v1alpha1.IdentityField{Path: path, Pattern: "("}}},
		"no group":             {{Type: "vm", MachineUID: v1alpha1.IdentityField{Path: path, Pattern: "a"}}},
		"two groups":           {{Type: "vm", MachineUID: v1alpha1.IdentityField{Path: path, Pattern: "(a)(b)"}}},
		"a type twice":         {{Type: "vm", MachineUID: v1alpha1.IdentityField{Path: path}}, {Type: "vm", MachineUID: v1alpha1.IdentityField{Path: path}}},
		"a wrong installation": {{Type: "vm", MachineUID: v1alpha1.IdentityField{Path: path}, Installation: &v1alpha1.IdentityField{}}},
	} {
		if _, faults := module.NewIdentities(one); len(faults) != 1 {
			t.Errorf("%s: got the faults %v, want one", name, faults)
		}
	}
}
