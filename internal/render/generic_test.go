package render

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// genericStart begins a providerSpec of the generic kind. Append more fields.
const genericStart = `{"apiVersion":"machine-iac.io/v1alpha1","kind":"TerraformMachineProviderSpec","module":"example"`

// bareModule returns a module without its own kind, and without fields for the names of Secrets.
func bareModule(t testing.TB) *module.Module {
	t.Helper()
	return moduleOf(t, map[string]string{
		"module.yaml": strings.Replace(readFile(t, "testdata/module/module.yaml"),
			"  providerSpecs:\n    - apiVersions: [example.io/v1]\n      kind: ExampleProviderSpec\n", "", 1),
		"variables.tf": `
variable "machine" {
  type        = object({ name = string, namespace = string, uid = string, cluster_id = string, labels = map(string) })
  description = "What the Machine says of itself."
}

variable "provider_spec" {
  type        = object({ size = string, cpu = optional(number, 2) })
  description = "The attributes of the values."
}

variable "user_data" {
  type        = string
  description = "What the instance runs at its first boot."
  sensitive   = true

  validation {
    condition     = startswith(var.user_data, "#")
    error_message = "User data begins with a hash."
  }
}
`,
	})
}

// asGeneric converts a providerSpec of a module's own kind to the generic kind. With hoist, the names of Secrets move
// beside the values.
func asGeneric(t testing.TB, own []byte, name string, hoist bool) []byte {
	t.Helper()
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(own, &values); err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.TerraformMachineProviderSpecKind, "module": name,
		"values": values,
	}
	delete(values, "apiVersion")
	delete(values, "kind")
	for _, field := range []string{"credentialsSecret", "userDataSecret"} {
		if value, given := values[field]; given && hoist {
			spec[field] = value
			delete(values, field)
		}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTheGenericKindRendersAsTheModulesOwn(t *testing.T) {
	from := moduleWith(t, readFile(t, validationsFile))
	for name, tc := range validationCases {
		for _, hoist := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				input := tc.input(t, from)
				want, wantErr := Render(input)
				_, wantCheck := Check(input)
				input.Machine.Spec.ProviderSpec.Value.Raw = asGeneric(t, input.Machine.Spec.ProviderSpec.Value.Raw,
					"example", hoist)
				got, err := Render(input)
				_, check := Check(input)
				if diff := cmp.Diff(belowValues(t, wantErr, hoist), errorLines(t, err)); diff != "" {
					t.Errorf("errors (-own +generic):\n%s", diff)
				}
				if diff := cmp.Diff(belowValues(t, wantCheck, hoist), errorLines(t, check)); diff != "" {
					t.Errorf("errors of the check (-own +generic):\n%s", diff)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-own +generic):\n%s", diff)
				}
			})
		}
	}
}

// belowValues converts errors about a module's own kind to those about the generic kind.
func belowValues(t *testing.T, err error, hoist bool) []string {
	lines := errorLines(t, err)
	for i, line := range lines {
		if !hoist || !strings.Contains(line, "Secret.name: ") {
			lines[i] = strings.Replace(line, "spec.providerSpec.value.", "spec.providerSpec.value.values.", 1)
		}
	}
	return lines
}

func TestTheManualMakesTheSameAsTheExampleOfTheModule(t *testing.T) {
	manual := readFile(t, "../../docs/providerspec.md")
	_, rest, _ := strings.Cut(manual, "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	var set machinev1beta1.MachineSet
	if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	machine := kubemarkMachine(t)
	machine.Name = "worker-1"
	input := Input{Machine: machine, Module: kubemarkModule(t), ClusterID: "demo", Credentials: map[string][]byte{
		"server": []byte("s"), "token": []byte("t"), "ca.crt": []byte("c"),
	}}
	want, err := Render(input)
	if err != nil {
		t.Fatal(err)
	}
	machine.Labels, machine.Spec = set.Spec.Template.Labels, set.Spec.Template.Spec
	got, err := Render(input)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-own +generic):\n%s", err, diff)
	}
	if policy, err := DriftPolicy(machine); err != nil || policy != v1alpha1.DriftReport {
		t.Errorf("want the default written out, got %q, %v", policy, err)
	}
}

func TestTheManualHasEveryFieldOfTheKindsForAnyModule(t *testing.T) {
	manual := readFile(t, "../../docs/providerspec.md")
	types := []reflect.Type{reflect.TypeFor[v1alpha1.TerraformMachineProviderSpec](),
		reflect.TypeFor[v1alpha1.PulumiMachineProviderSpec]()}
	for i, engine := range module.Engines() {
		kind := genericKind{engine}
		if types[i].Name() != kind.KindForAny {
			t.Fatalf("the kind %s is of the type %s", kind.KindForAny, types[i])
		}
		for field := range types[i].Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			if !slices.Contains(kind.fields(), name) {
				t.Errorf("the field %s is in %s, but nobody reads it", name, kind.KindForAny)
			}
			if !strings.Contains(manual, "\n| `"+name) {
				t.Errorf("docs/providerspec.md does not explain %s", name)
			}
		}
	}
}

func TestGenericFieldsThatAreWrong(t *testing.T) {
	const (
		at     = "spec.providerSpec.value."
		secret = "name a Secret in the Machine's namespace"
		small  = `,"values":{"size":"small"}`
		named  = `,"credentialsSecret":{"name":"c"}`
	)
	tests := map[string]struct {
		raw  string
		want []FieldError
	}{
		"another module": {
			raw: strings.Replace(genericStart, `"example"`, `"other"`, 1) + small + named + `}`,
			want: []FieldError{{
				Path: at + "module", Value: `"other"`,
				Problem: `it names the module "other", but the Machine is served by "example"`, Fix: "name that one",
			}},
		},
		"no module": {
			raw: strings.Replace(genericStart, `,"module":"example"`, "", 1) + small + named + `}`,
			want: []FieldError{{Path: at + "module", Fault: Missing,
				Problem: "the name of a provider module is required, but it is missing",
				Fix:     "name a provider module that is loaded"}},
		},
		"a module that is a number": {
			raw: strings.Replace(genericStart, `"example"`, `4`, 1) + small + named + `}`,
			want: []FieldError{{Path: at + "module", Value: "4",
				Problem: "the name of a provider module is required, but it is a number",
				Fix:     "name a provider module that is loaded"}},
		},
		"values that are a list": {
			raw: genericStart + `,"values":["small"]` + named + `}`,
			want: []FieldError{{Path: at + "values", Problem: "an object is required, but it is a list",
				Fix: "write the attributes of the module's variable provider_spec"}},
		},
		"values that are left out": {
			raw: genericStart + named + `}`,
			want: []FieldError{{Path: at + "values.size", Fault: Missing,
				Problem: "a string is required, but it is missing", Fix: `add size: "text"`}},
		},
		"a value of another type": {
			raw: genericStart + `,"values":{"size":"small","cpu":"four"}` + named + `}`,
			want: []FieldError{{Path: at + "values.cpu", Value: `"four"`,
				Problem: `a number is required, but "four" is a string`, Fix: "write it as cpu: 4"}},
		},
		"a key that is given twice": {
			raw:  genericStart + `,"values":{"size":"small","size":"big"}` + named + `}`,
			want: []FieldError{{Path: at + "values.size", Problem: "it is given twice", Fix: "keep one"}},
		},
		"no credentials are reported once": {
			raw: genericStart + small + `}`,
			want: []FieldError{{Path: at + "credentialsSecret.name", Fault: Missing,
				Problem: "the name of a Secret is required, but it is missing", Fix: secret}},
		},
		"credentials without a name": {
			raw: genericStart + small + `,"credentialsSecret":{}}`,
			want: []FieldError{{Path: at + "credentialsSecret.name", Fault: Missing,
				Problem: "the name of a Secret is required, but it is missing", Fix: secret}},
		},
		"credentials that are named by a number": {
			raw: genericStart + small + `,"credentialsSecret":{"name":4}}`,
			want: []FieldError{{Path: at + "credentialsSecret.name", Problem: "the name of a Secret is required, but " +
				"it is a number", Fix: secret}},
		},
		"credentials that are a text": {
			raw: genericStart + small + `,"credentialsSecret":"c"}`,
			want: []FieldError{{Path: at + "credentialsSecret", Problem: "an object is required, but it is a string",
				Fix: `write it as credentialsSecret: {name: "text"}`}},
		},
		"credentials whose name is none": {
			raw: genericStart + small + `,"credentialsSecret":{"name":"../c"}}`,
			want: []FieldError{{Path: at + "credentialsSecret.name", Value: `"../c"`,
				Problem: `the name of a Secret is required, not "../c"`,
				Fix:     "use lower-case letters, digits, '-' and '.'"}},
		},
		"values name other credentials": {
			raw: genericStart + `,"values":{"size":"small","credentialsSecret":{"name":"d"}}` + named + `}`,
			want: []FieldError{{
				Path: at + "credentialsSecret.name", Value: `"c"`,
				Problem: `the Secret "c" is named, but values.credentialsSecret.name names "d"`, Fix: "name it once",
			}},
		},
		"values name credentials of another type": {
			raw: genericStart + `,"values":{"size":"small","credentialsSecret":"d"}` + named + `}`,
			want: []FieldError{{Path: at + "values.credentialsSecret",
				Problem: "an object is required, but it is a string",
				Fix:     `write it as credentialsSecret: {name: "text"}`}},
		},
		"values name credentials whose name is none": {
			raw: genericStart + `,"values":{"size":"small","credentialsSecret":{"name":"../c"}}}`,
			want: []FieldError{{
				Path: at + "values.credentialsSecret.name", Value: `"../c"`,
				Problem: `the name of a Secret is required, not "../c"`,
				Fix:     "use lower-case letters, digits, '-' and '.'",
			}},
		},
		"user data without a name": {
			raw: genericStart + small + named + `,"userDataSecret":{"name":""}}`,
			want: []FieldError{{Path: at + "userDataSecret.name", Fault: Missing,
				Problem: "the name of a Secret is required, but it is empty", Fix: secret}},
		},
		"a drift policy that is none": {
			raw: genericStart + small + named + `,"driftPolicy":"replace"}`,
			want: []FieldError{{Path: at + "driftPolicy", Fault: Unsupported, Value: `"replace"`,
				Problem: `"replace" is no drift policy`, Fix: "write Report, Repair or Ignore"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, tc.raw)
			_, err := Check(input)
			var got []FieldError
			if failed, ok := err.(Errors); ok { //nolint:errorlint // the test is of the type that is returned
				for _, one := range failed {
					got = append(got, *one)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGenericFieldsWithoutEffectWarn(t *testing.T) {
	input := inputWith(t, genericStart+`,"metadata":{"creationTimestamp":null},"cpu":4,"Values":{},"size":{},`+
		`"credentialsSecret":{"name":"c","namespace":"n"},"values":{"size":"small","kind":"K","Cpu":4}}`)
	input.Machine.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: "nonsense"}
	want := []Warning{
		{Path: "spec.providerSpec.value.Values", Message: "unknown field, ignored", Hint: "write it as values",
			Unknown: true},
		{Path: "spec.providerSpec.value.cpu", Message: "unknown field, ignored", Hint: "write it below values",
			Unknown: true},
		{Path: "spec.providerSpec.value.size", Message: "unknown field, ignored", Hint: "write it below values",
			Unknown: true},
		{
			Path:    `metadata.annotations["machine-iac.io/drift-policy"]`,
			Message: "it has no effect beside a TerraformMachineProviderSpec",
			Hint:    "set driftPolicy in the providerSpec",
		},
		{Path: "spec.providerSpec.value.credentialsSecret.namespace", Message: "unknown field, ignored", Unknown: true},
		{Path: "spec.providerSpec.value.values.Cpu", Message: "unknown field, ignored", Hint: "write it as cpu",
			Unknown: true},
		{Path: "spec.providerSpec.value.values.kind", Message: "unknown field, ignored", Unknown: true},
	}
	got, err := Check(input)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
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

func TestCredentialsOfAModuleThatReadsNoneWarn(t *testing.T) {
	description := readFile(t, "testdata/module/module.yaml")
	from, until := strings.Index(description, "  credentials:"), strings.Index(description, "  environment:")
	input := inputWith(t,
		genericStart+`,"credentialsSecret":{"name":"c"},"values":{"size":"small","credentialsSecret":{"name":"d"}}}`)
	input.Module = moduleOf(t, map[string]string{"module.yaml": description[:from] + description[until:]})
	warnings, err := Check(input)
	want := []Warning{{
		Path:    "spec.providerSpec.value.credentialsSecret",
		Message: `the module "example" reads no credentials, so it has no effect`, Hint: "leave it out",
	}}
	if diff := cmp.Diff(want, warnings); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if credentials, _, err := Refs(input.Machine, input.Module); err != nil || credentials.Name != "" {
		t.Errorf("want no Secret that is read for nothing, got %q, %v", credentials.Name, err)
	}
}

func TestSecretsOfTheGenericKind(t *testing.T) {
	const at = "spec.providerSpec.value."
	tests := map[string]struct {
		raw                           string
		bare                          bool
		wantCredentials, wantUserData Ref
		want                          string // what the values have for the two in the end
	}{
		"beside the values": {
			raw: genericStart +
				`,"values":{"size":"small"},"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}}`,
			wantCredentials: Ref{Name: "c", Path: at + "credentialsSecret.name"},
			wantUserData:    Ref{Name: "u", Path: at + "userDataSecret.name"},
			want:            `{"name":"c"} {"name":"u"}`,
		},
		"in the values": {
			raw: genericStart +
				`,"values":{"size":"small","credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}}}`,
			wantCredentials: Ref{Name: "c", Path: at + "values.credentialsSecret.name"},
			wantUserData:    Ref{Name: "u", Path: at + "values.userDataSecret.name"},
			want:            `{"name":"c"} {"name":"u"}`,
		},
		"the same at both places": {
			raw: genericStart +
				`,"values":{"size":"small","credentialsSecret":{"name":"c"}},"credentialsSecret":{"name":"c"}}`,
			wantCredentials: Ref{Name: "c", Path: at + "credentialsSecret.name"},
			wantUserData:    Ref{Path: at + "userDataSecret.name"},
			want:            `{"name":"c"} null`,
		},
		"what the values leave empty is filled in": {
			raw: genericStart + `,"values":{"size":"small","credentialsSecret":{"name":""},"userDataSecret":null},` +
				`"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}}`,
			wantCredentials: Ref{Name: "c", Path: at + "credentialsSecret.name"},
			wantUserData:    Ref{Name: "u", Path: at + "userDataSecret.name"},
			want:            `{"name":"c"} {"name":"u"}`,
		},
		"a module without fields for them": {
			bare: true,
			raw: genericStart +
				`,"values":{"size":"small"},"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}}`,
			wantCredentials: Ref{Name: "c", Path: at + "credentialsSecret.name"},
			wantUserData:    Ref{Name: "u", Path: at + "userDataSecret.name"},
			want:            " ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, tc.raw)
			input.UserData = []byte("#!/bin/sh\n")
			if tc.bare {
				input.Module = bareModule(t)
			}
			credentials, userData, err := Refs(input.Machine, input.Module)
			if err != nil || credentials != tc.wantCredentials || userData != tc.wantUserData {
				t.Errorf("got %+v, %+v, %v; want %+v, %+v", credentials, userData, err, tc.wantCredentials,
					tc.wantUserData)
			}
			if warnings, err := Check(input); err != nil || len(warnings) > 0 {
				t.Errorf("want the check to accept it, got %v, %v", warnings, err)
			}
			inputs, err := Render(input)
			if err != nil {
				t.Fatal(err)
			}
			var variables struct {
				ProviderSpec map[string]json.RawMessage `json:"provider_spec"`
				UserData     string                     `json:"user_data"`
			}
			if err := json.Unmarshal(inputs.Variables, &variables); err != nil {
				t.Fatal(err)
			}
			got := string(variables.ProviderSpec["credentialsSecret"]) + " " +
				string(variables.ProviderSpec["userDataSecret"])
			if got != tc.want || variables.UserData != "#!/bin/sh\n" {
				t.Errorf("want %s and user data, got %s", tc.want, inputs.Variables)
			}
		})
	}
}

func TestUserDataOfAModuleWithoutAFieldForIt(t *testing.T) {
	const noUserData = `spec.providerSpec.value.userDataSecret.name: the module "example" does not allow the value; User data begins with a hash.`
	input := inputWith(t, genericStart+`,"values":{"size":"small"},"credentialsSecret":{"name":"c"}}`)
	input.Module = bareModule(t)
	_, err := Check(input)
	if diff := cmp.Diff([]string{noUserData}, errorLines(t, err)); diff != "" || OnlySecrets(err) {
		t.Errorf("where no Secret is named, there is no user data (-want +got):\n%s", diff)
	}
	input.Machine.Spec.ProviderSpec.Value.Raw = []byte(genericStart +
		`,"values":{"size":"small"},"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}}`)
	if _, err := Check(input); err != nil {
		t.Errorf("want to leave open what is in the Secret, got %v", err)
	}
	input.UserData = []byte("echo")
	_, err = Render(input)
	if diff := cmp.Diff([]string{noUserData}, errorLines(t, err)); diff != "" || !OnlySecrets(err) {
		t.Errorf("want the Secret to be at fault (-want +got):\n%s", diff)
	}
}

func TestAKeyIsNamedByAValueOfTheGenericKind(t *testing.T) {
	input := inputWith(t, genericStart+`,"values":{"size":"small"},"credentialsSecret":{"name":"c"}}`)
	input.Module = namedModule(t)
	const want = `spec.providerSpec.value.values.placement.zone: the key "{placement.zone}.token" of the credentials Secret is named after it, ` +
		`but it is missing or empty; write it`
	_, err := CredentialKeys(input.Machine, input.Module)
	if textOf(err) != want {
		t.Errorf("want %q, got %v", want, err)
	}
	if _, err := Check(input); textOf(err) != want {
		t.Errorf("Check: want %q, got %v", want, err)
	}
}

func TestValuesPath(t *testing.T) {
	for raw, want := range map[string]string{
		valid + `}`: "spec.providerSpec.value", genericStart + `}`: "spec.providerSpec.value.values",
		`[`: "spec.providerSpec.value",
	} {
		if got := ValuesPath(machineWith(raw)); got != want {
			t.Errorf("%s: want %s, got %s", raw, want, got)
		}
	}
}
