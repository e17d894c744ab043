package render

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

func TestCheckReturnsWhatRenderWouldAsFarAsItIsKnown(t *testing.T) {
	tests := map[string]struct {
		validationCase
		change func(*machinev1beta1.Machine)
		want   []string
	}{
		"neither name nor UID": {change: func(m *machinev1beta1.Machine) { m.Name, m.UID = "", "" }},
		"a name that may become any": {change: func(m *machinev1beta1.Machine) {
			m.Name, m.Labels = "", map[string]string{"tier": "low"}
		}},
		"the beginning of a name suffices": {change: func(m *machinev1beta1.Machine) {
			m.Name, m.GenerateName = "", "worker-a-"
		}},
		"a name that will be wrong": {
			change: func(m *machinev1beta1.Machine) {
				m.Name, m.GenerateName, m.Labels = "", "infra-", map[string]string{"tier": "low"}
			},
			want: []string{
				`spec.template.metadata: the module "example" does not allow labels.tier "low" with name; Begin the name with worker-.`},
		},
		"user data that nobody has read": {validationCase: validationCase{fields: `"userDataSecret":{"name":"u"}`}},
		"a wrong field": {
			validationCase: validationCase{fields: `"placement":{"zone":"z-9"}`},
			want: []string{
				`spec.template.spec.providerSpec.value.placement.zone: the module "example" does not allow "z-9"; Zones are z-1 and z-2.`,
			},
		},
		"a field together with a name that is open": {
			validationCase: validationCase{fields: `"suffix":"-0123456789-0123456789-0123456789"`},
			change:         func(m *machinev1beta1.Machine) { m.Name, m.GenerateName = "", "worker-" },
		},
		"the name of a Secret": {
			validationCase: validationCase{fields: `"credentialsSecret":{"name":"../c"}`},
			want: []string{
				`spec.template.spec.providerSpec.value.credentialsSecret.name: the name of a Secret is required, not "../c"; ` +
					`use lower-case letters, digits, '-' and '.'`,
			},
		},
		"a Secret that is missing is reported once": {
			validationCase: validationCase{fields: `"credentialsSecret":null`},
			want: []string{
				`spec.template.spec.providerSpec.value.credentialsSecret: an object is required, but it is missing; add credentialsSecret: {name: "text"}`,
			},
		},
		"a kind that the module does not serve": {
			validationCase: validationCase{fields: `"kind":"Other","memory":"x"`},
			want: []string{
				`spec.template.spec.providerSpec.value: the module "example" does not serve apiVersion "example.io/v1", kind "Other"; name a kind that it serves`,
			},
		},
	}
	from := moduleWith(t, readFile(t, validationsFile))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			input := tc.input(t, from)
			input.Credentials, input.UserData, input.ClusterID, input.Under = nil, nil, "", "spec.template"
			if tc.change != nil {
				tc.change(input.Machine)
			}
			_, err := Check(input)
			if diff := cmp.Diff(tc.want, errorLines(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckReturnsForAMachineWhatRenderReturns(t *testing.T) {
	from := moduleWith(t, readFile(t, validationsFile))
	for name, tc := range validationCases {
		t.Run(name, func(t *testing.T) {
			input := tc.input(t, from)
			_, rendered := Render(input)
			input.Credentials = nil
			_, checked := Check(input)
			if OnlySecrets(rendered) {
				rendered = nil
			}
			if diff := cmp.Diff(errorLines(t, rendered), errorLines(t, checked)); diff != "" {
				t.Errorf("(-render +check):\n%s", diff)
			}
		})
	}
}

func TestCheckWarnsAboutUnknownFields(t *testing.T) {
	input := inputWith(t, valid+`,"Size":1}`)
	input.Under = "spec.template"
	warnings, err := Check(input)
	want := []Warning{{Path: "spec.template.spec.providerSpec.value.Size", Message: "unknown field, ignored",
		Hint: "write it as size", Unknown: true}}
	if diff := cmp.Diff(want, warnings); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	inputs, err := Render(input)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, inputs.Warnings); diff != "" {
		t.Errorf("Render (-want +got):\n%s", diff)
	}
}

func TestCheckWithoutAMachineIsAMistakeOfTheCaller(t *testing.T) {
	if _, err := Check(Input{}); err == nil || IsFieldError(err) {
		t.Errorf("want an error that no change of the Machine helps, got %v", err)
	}
}

func TestUnder(t *testing.T) {
	_, _, err := KindOf(machineWith(`{}`))
	moved := Under("spec.template", err)
	const want = "spec.template.spec.providerSpec.value.apiVersion"
	var failed Errors
	if !errors.As(moved, &failed) || len(failed) != 2 || failed[0].Path != want {
		t.Errorf("want two errors, the first at %s, got %v", want, moved)
	}
	if !errors.As(err, &failed) || failed[0].Path != "spec.providerSpec.value.apiVersion" {
		t.Errorf("want the error as it was, got %v", err)
	}
	if other := errors.New("other"); !errors.Is(Under("spec.template", other), other) ||
		Under("spec.template", nil) != nil {
		t.Error("want any other error as it is")
	}
}

func BenchmarkCheck(b *testing.B) {
	kubemark := kubemarkModule(b)
	input := Input{Machine: kubemarkMachine(b), Module: kubemark, ClusterID: "demo", Under: "spec.template"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(input); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckThatFails(b *testing.B) {
	from := moduleWith(b, readFile(b, validationsFile))
	input := validationCase{
		fields: `"size":"huge","cpu":0,"disks":[{"gib":0},{"gib":1,"type":"x"}],"password":"x","labels":{"a":"b"}`}.input(b, from)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(input); err == nil {
			b.Fatal("want an error")
		}
	}
}
