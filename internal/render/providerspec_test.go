package render

import (
	"errors"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"
)

func TestProviderSpecIsWhatARunIsGiven(t *testing.T) {
	example := exampleModule(t)
	// A MachineSet's template has no name, UID or Secrets.
	template := &machinev1beta1.Machine{Spec: machineWith(valid + `,"colour":"red"}`).Spec}
	value, err := ProviderSpec(template, example)
	if err != nil {
		t.Fatal(err)
	}
	if size := value.GetAttr("size"); !size.RawEquals(cty.StringVal("small")) {
		t.Errorf("size is %#v, want small", size)
	}
	input := inputWith(t, valid+"}")
	inputs, err := Render(input)
	if err != nil {
		t.Fatal(err)
	}
	again, err := (&variables{values: map[string]cty.Value{"machine": renderMachine(input), "provider_spec": value,
		"user_data": cty.StringVal("")}}).marshal()
	if err != nil || string(again) != string(inputs.Variables) {
		t.Errorf("the providerSpec differs from that of a run: %s, want within %s (%v)", again, inputs.Variables, err)
	}
}

func TestProviderSpecNamesWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  string
		want string
	}{
		"a field of the wrong type": {valid + `,"size":{}}`, "spec.providerSpec.value.size"},
		"a kind of another module":  {`{"apiVersion":"a/v1","kind":"B"}`, "spec.providerSpec.value"},
		"no object":                 {`[]`, "spec.providerSpec.value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ProviderSpec(machineWith(tc.raw), exampleModule(t))
			found, ok := errors.AsType[Errors](err)
			if !ok || found[0].Path != tc.want {
				t.Errorf("got %v, want an error at %s", err, tc.want)
			}
		})
	}
	if _, err := ProviderSpec(nil, nil); err == nil || IsFieldError(err) {
		t.Errorf("got %v, want a mistake of the caller", err)
	}
}
