package contract_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestAModuleSaysWhatDisruptsItsInstance(t *testing.T) {
	got := moduletest.Load(t, also("  disruptive:\n    - {type: example_instance, attributes: [size, image], effect: stops it}\n")).Spec().Disruptive
	want := []v1alpha1.DisruptiveChange{{Type: "example_instance", Attributes: []string{"size", "image"}, Effect: "stops it"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for entry, want := range map[string]string{
		"{type: example_port, attributes: [size], effect: stops it}":           `spec.disruptive[0].type is "example_port", which is not the type of a resource of the module`,
		"{type: example_instance, attributes: [], effect: stops it}":           "spec.disruptive[0].attributes is empty; name at least one attribute",
		"{type: example_instance, attributes: [size, size], effect: stops it}": `spec.disruptive[0].attributes[1] is "size", which is empty or a duplicate`,
		`{type: example_instance, attributes: [""], effect: stops it}`:         `spec.disruptive[0].attributes[0] is "", which is empty or a duplicate`,
		"{type: example_instance, attributes: [size], effect: ''}":             "spec.disruptive[0].effect does not describe in one line what happens to the instance",
		`{type: example_instance, attributes: [size], effect: "stops\nit"}`:    "spec.disruptive[0].effect does not describe in one line what happens to the instance",
	} {
		_, err := load.Module(moduletest.FS(moduletest.Changed(t, also("  disruptive:\n    - "+entry+"\n"))))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", entry, err, want)
		}
	}
}

func TestAModuleSaysWhatIsPartOfItsInstance(t *testing.T) {
	if got := moduletest.Load(t, also("  partOfInstance: [terraform_data]\n")).Spec().PartOfInstance; !slices.Equal(got, []string{"terraform_data"}) {
		t.Errorf("got %v", got)
	}
	for name, want := range map[string]string{
		"example_tag":      `spec.partOfInstance[0] is "example_tag", which is not the type of a resource of the module`,
		"example_instance": "spec.partOfInstance[0] names example_instance, the type of the instance, which would not be destroyed; remove it",
	} {
		_, err := load.Module(moduletest.FS(moduletest.Changed(t, also("  partOfInstance: ["+name+"]\n"))))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
