package machineset

import (
	"fmt"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestWhatAdmissionMadeOfTheTemplateIsInSync(t *testing.T) {
	set := builder.MachineSet()
	template := &runtime.RawExtension{Raw: []byte(`{"cpu":4}`)}
	set.Spec.Template.Spec.ProviderSpec.Value = template
	machine := builder.Machine()
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"cpu":4,"disk":1}`)}
	if err := machineapi.NoteCompletion(t.Context(), &stubClient{}, machine, template); err != nil {
		t.Fatal(err)
	}
	is := func(want corev1.ConditionStatus, when string) {
		t.Helper()
		if got := inSync(set, []*machinev1beta1.Machine{machine}); got.Status != want {
			t.Errorf("%s: got %s, want %s", when, got.Status, want)
		}
	}
	is(corev1.ConditionTrue, "completed")
	machine.Spec.ProviderSpec.Value.Raw = []byte(`{"cpu":4,"disk":2}`)
	is(corev1.ConditionFalse, "then changed by hand")
	machine.Spec.ProviderSpec.Value.Raw, template.Raw = []byte(`{"cpu":4,"disk":1}`), []byte(`{"cpu":8}`)
	is(corev1.ConditionFalse, "with a new template")
}

func TestTemplateInSync(t *testing.T) {
	const template = `{"kind":"x","cpu":4,"tags":{"a":"1","b":"2"},"disks":[{"size":1}]}`
	many := `{"kind":"x"`
	for i := range 12 {
		many += fmt.Sprintf(`,"f%02d":1`, i)
	}
	for name, tc := range map[string]struct {
		specs []string
		want  string // empty if True
	}{
		"no Machines":                   {},
		"equal":                         {specs: []string{template, template}},
		"equal but for order and space": {specs: []string{`{"tags": {"b":"2","a":"1"}, "disks":[{"size":1}], "cpu":4, "kind":"x"}`}},
		"a field, twice": {specs: []string{template, strings.Replace(template, "4", "8", 1), strings.Replace(template, "4", "8", 1)},
			want: "2 of 3 Machines differ from the template in cpu. "},
		"several fields of several Machines": {
			specs: []string{strings.Replace(template, `"size":1`, `"size":2`, 1), strings.Replace(template, `"b":"2"`, `"c":"2"`, 1)},
			want:  "2 of 2 Machines differ from the template in disks, tags.b, tags.c. "},
		"numbers beyond a float": {specs: []string{strings.Replace(template, "4", "9007199254740993", 1)}, want: "1 of 1 Machines differ from the template in cpu. "},
		"not readable":           {specs: []string{`{`}, want: "1 of 1 Machines differ from the template in providerSpec. "},
		"none":                   {specs: []string{""}, want: "1 of 1 Machines differ from the template in providerSpec. "},
		"many fields": {specs: []string{strings.Replace(template, `{"kind":"x"`, many, 1)},
			want: "1 of 1 Machines differ from the template in f00, f01, f02, f03, f04, f05, f06, f07, 4 more. "},
	} {
		t.Run(name, func(t *testing.T) {
			set := builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.Name = "workers" })
			set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(template)}
			var machines []*machinev1beta1.Machine
			for _, raw := range tc.specs {
				machine := builder.Machine()
				machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(raw)}
				machines = append(machines, machine)
			}
			got := inSync(set, machines)
			if tc.want != "" {
				tc.want += "To see what a change would do, run 'kubectl machine plan machineset/workers'"
			}
			if is := got.Status == corev1.ConditionTrue; is != (tc.want == "") || !is && got.Message != tc.want {
				t.Errorf("got %s %q, want %q", got.Status, got.Message, tc.want)
			}
		})
	}
}
