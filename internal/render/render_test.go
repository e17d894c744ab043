package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

func TestRenderReturnsOneFieldError(t *testing.T) {
	tests := map[string]struct {
		providerSpec string
		userData     string
		want         FieldError
	}{
		"a string where a number is wanted": {
			providerSpec: valid + `,"cpu":"four"}`,
			want: FieldError{
				Path: "spec.providerSpec.value.cpu", Value: `"four"`,
				Problem: `a number is required, but "four" is a string`, Fix: "write it as cpu: 4",
			},
		},
		"a field of a nested object is missing": {
			providerSpec: valid + `,"placement":{}}`,
			want: FieldError{Path: "spec.providerSpec.value.placement.zone", Fault: Missing,
				Problem: "a string is required, but it is missing", Fix: `add zone: "text"`},
		},
		"a nested object has a wrong field": {
			providerSpec: valid + `,"placement":{"zone":["a"]}}`,
			want: FieldError{Path: "spec.providerSpec.value.placement.zone",
				Problem: "a string is required, but it is a list", Fix: `write it as zone: "text"`},
		},
		"a value that may be a secret is not shown": {
			providerSpec: valid + `,"apiToken":"hunter2"}`,
			want: FieldError{Path: "spec.providerSpec.value.apiToken",
				Problem: "a number is required, but it is a string", Fix: "write it as apiToken: 4"},
		},
		"a long value is shortened": {
			providerSpec: valid + `,"cpu":"` + strings.Repeat("é", 1<<20) + `"}`,
			want: FieldError{
				Path: "spec.providerSpec.value.cpu", Value: `"` + strings.Repeat("é", 64) + `..."`,
				Problem: `a number is required, but "` + strings.Repeat("é", 64) + `..." is a string`,
				Fix:     "write it as cpu: 4",
			},
		},
		"a key is given twice": {
			providerSpec: valid + `,"cpu":1,"cpu":2}`,
			want: FieldError{Path: "spec.providerSpec.value.cpu", Problem: "it is given twice",
				Fix: "keep one"},
		},
		"nesting without end": {
			providerSpec: valid + `,"x":` + strings.Repeat("[", 1<<20) + "}",
			want: FieldError{
				Path:    "spec.providerSpec.value.x" + strings.Repeat("[0]", maxDepth-1),
				Problem: "it nests deeper than 64 levels", Fix: "write it flatter",
			},
		},
		"a number without end": {
			providerSpec: valid + `,"cpu":` + strings.Repeat("9", 1<<20) + "}",
			want: FieldError{
				Path: "spec.providerSpec.value.cpu", Value: strings.Repeat("9", 64) + "...",
				Fix:     "write a shorter number, or a string",
				Problem: "a number has at most 150 digits and an exponent of at most 308, but this one has more",
			},
		},
		"an exponent without end": {
			providerSpec: valid + `,"cpu":1e999999999}`,
			want: FieldError{
				Path: "spec.providerSpec.value.cpu", Value: "1e999999999", Fix: "write a shorter number, or a string",
				Problem: "a number has at most 150 digits and an exponent of at most 308, but this one has more",
			},
		},
		"a number without end in a string": {
			providerSpec: valid + `,"cpu":"1e999999999"}`,
			want: FieldError{
				Path: "spec.providerSpec.value.cpu", Value: "1e999999999", Fix: "write a shorter number, or a string",
				Problem: "a number has at most 150 digits and an exponent of at most 308, but this one has more",
			},
		},
		"a number without end in a string that may be a secret": {
			providerSpec: valid + `,"apiToken":"1e999999999"}`,
			want: FieldError{
				Path: "spec.providerSpec.value.apiToken", Fix: "write a shorter number, or a string",
				Problem: "a number has at most 150 digits and an exponent of at most 308, but this one has more",
			},
		},
		"a word that some read as a number": {
			providerSpec: valid + `,"cpu":"Inf"}`,
			want: FieldError{
				Path: "spec.providerSpec.value.cpu", Value: `"Inf"`,
				Problem: `a number is required, but "Inf" is a string`, Fix: "write it as cpu: 4",
			},
		},
		"a key is given twice in two spellings of one character": {
			providerSpec: valid + `,"labels":{"\u00e9":"1","e\u0301":"2"}}`,
			want: FieldError{Path: `spec.providerSpec.value.labels["é"]`, Problem: "it is given twice",
				Fix: "keep one"},
		},
		"broken JSON": {
			providerSpec: `{"cpu":`,
			want:         FieldError{Path: "spec.providerSpec.value.cpu", Problem: "it is not valid JSON: EOF"},
		},
		"more than one value": {
			providerSpec: valid + "} {}",
			want: FieldError{Path: "spec.providerSpec.value", Problem: "there is more than one JSON value",
				Fix: "keep one object"},
		},
		"no object": {
			providerSpec: `["a"]`,
			want: FieldError{Path: "spec.providerSpec.value",
				Problem: "an object is required, but it is a list", Fix: "write the providerSpec of a provider module"},
		},
		"no providerSpec": {
			providerSpec: " ",
			want: FieldError{Path: "spec.providerSpec.value", Fault: Missing,
				Problem: "an object is required, but it is missing",
				Fix:     "write the providerSpec of a provider module"},
		},
		"a kind of another module": {
			providerSpec: strings.Replace(valid, "ExampleProviderSpec", "OtherSpec", 1) + "}",
			want: FieldError{
				Path: "spec.providerSpec.value", Value: `"example.io/v1 OtherSpec"`, Fix: "name a kind that it serves",
				Problem: `the module "example" does not serve apiVersion "example.io/v1", kind "OtherSpec"`,
			},
		},
		"user data that is no text": {
			providerSpec: valid + "}", userData: "\x1f\x8b\xff",
			want: FieldError{
				InSecret: true,
				Path:     "spec.providerSpec.value.userDataSecret.name",
				Problem:  "user data is UTF-8 text, but these 3 bytes are not",
				Fix:      "encode it, for example in base64, if what boots the instance can read that",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, tc.providerSpec)
			input.UserData = []byte(tc.userData)
			_, err := Render(input)
			var failed Errors
			if !errors.As(err, &failed) || len(failed) != 1 || !IsFieldError(err) {
				t.Fatalf("want one FieldError, got %v", err)
			}
			if diff := cmp.Diff(tc.want, *failed[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderKeepsDataExact(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	tests := map[string]struct {
		field, value, want string
	}{
		"a number past 2^53": {field: "cpu", value: "9007199254740993", want: "9007199254740993"},
		"a number of 150 digits": {field: "cpu", value: strings.Repeat("7", 150),
			want: strings.Repeat("7", 150)},
		"a fraction":                     {field: "cpu", value: "0.1", want: "0.1"},
		"one number in another notation": {field: "cpu", value: "1.50e2", want: "150"},
		"a number as a string":           {field: "cpu", value: `"12"`, want: "12"},
		"a string from a number": {field: "size", value: "12345678901234567890",
			want: `"12345678901234567890"`},
		"a template": {field: "size", value: `"${var.user_data}%{ if x }"`,
			want: `"${var.user_data}%{ if x }"`},
		"a newline and a quote": {field: "size", value: `"a\n\"b"`, want: `"a\n\"b"`},
		"a string of 1 MiB":     {field: "size", value: `"` + long + `"`, want: `"` + long + `"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := strings.Replace(valid, `"size":"small",`, "", 1) + `,"` + tc.field + `":` + tc.value
			if tc.field != "size" {
				spec += `,"size":"small"`
			}
			inputs, err := Render(inputWith(t, spec+"}"))
			if err != nil {
				t.Fatal(err)
			}
			var variables struct {
				ProviderSpec map[string]json.RawMessage `json:"provider_spec"`
			}
			if err := json.Unmarshal(inputs.Variables, &variables); err != nil {
				t.Fatal(err)
			}
			if got := string(variables.ProviderSpec[tc.field]); got != tc.want {
				t.Errorf("want %.80s, got %.80s", tc.want, got)
			}
		})
	}
}

func TestHash(t *testing.T) {
	base := func() Input {
		input := inputWith(t, valid+`,"labels":{"a":"1","b":"2"}}`)
		input.UserData = []byte("data")
		input.CredentialsVersion = "1"
		return input
	}
	tests := map[string]struct {
		change     func(*Input)
		wantChange bool
	}{
		"stays for the same input": {change: func(*Input) {}},
		"stays when keys are reordered": {
			change: func(i *Input) {
				i.Machine.Spec.ProviderSpec.Value.Raw = []byte(valid + `,"labels":{"b":"2","a":"1"}}`)
			},
		},
		"stays when a default is written out": {
			change: func(i *Input) {
				i.Machine.Spec.ProviderSpec.Value.Raw = []byte(valid + `,"cpu":2,"labels":{"a":"1","b":"2"}}`)
			},
		},
		"stays when an unknown field comes": {
			change: func(i *Input) {
				i.Machine.Spec.ProviderSpec.Value.Raw = []byte(valid + `,"x":2,"labels":{"a":"1","b":"2"}}`)
			},
		},
		"stays when credentials change by value only": {
			change: func(i *Input) { i.Credentials["token"] = []byte("other") },
		},
		"stays when the operator publishes labels": {
			change: func(i *Input) {
				i.Machine.Labels = map[string]string{"machine.openshift.io/zone": "z",
					"machine.openshift.io/region": "r", "machine.openshift.io/instance-type": "t"}
			},
		},
		"changes with the credentials version": {change: func(i *Input) { i.CredentialsVersion = "2" },
			wantChange: true},
		"stays with other user data": {change: func(i *Input) { i.UserData = []byte("other") }},
		"changes with a field": {
			change: func(i *Input) {
				i.Machine.Spec.ProviderSpec.Value.Raw = []byte(valid + `,"cpu":3,"labels":{"a":"1","b":"2"}}`)
			},
			wantChange: true,
		},
		"changes with a label of the user": {change: func(i *Input) { i.Machine.Labels = map[string]string{"a": "b"} },
			wantChange: true},
		"changes with the cluster": {change: func(i *Input) { i.ClusterID = "other" }, wantChange: true},
	}
	want, err := Render(base())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			input := base()
			tc.change(&input)
			got, err := Render(input)
			if err != nil {
				t.Fatal(err)
			}
			if (got.Hash != want.Hash) != tc.wantChange {
				t.Errorf("want a change: %t, got %s after %s", tc.wantChange, got.Hash, want.Hash)
			}
		})
	}
}

func TestRenderNamesTheMissingKeyOfTheSecret(t *testing.T) {
	input := inputWith(t, valid+"}")
	input.Credentials = map[string][]byte{"endpoint": []byte("https://example.com"), "token": {}}
	_, err := Render(input)
	const want = `spec.providerSpec.value.credentialsSecret.name: the Secret needs the key "token", but it is empty; add it to the Secret's data`
	if err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	if !OnlySecrets(err) {
		t.Error("OnlySecrets is false for a fault of a Secret")
	}
	input.Machine.Spec.ProviderSpec.Value.Raw = []byte(valid + `,"cpu":"four"}`)
	if _, err := Render(input); OnlySecrets(err) {
		t.Errorf("OnlySecrets is true although a field is wrong too: %v", err)
	}
}

func TestErrorsNeverShowSecrets(t *testing.T) {
	input := inputWith(t, valid+`,"cpu":"four"}`)
	input.UserData = []byte("user-data\xff")
	input.Credentials = map[string][]byte{"token": []byte("t0p-secret\x00")}
	_, err := Render(input)
	if err == nil || strings.Contains(err.Error(), "t0p-secret") || strings.Contains(err.Error(), "user-data") {
		t.Errorf("want an error without secrets, got %v", err)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	wrong := make([]string, 1000)
	for i := range wrong {
		wrong[i] = "{}"
	}
	_, err := Render(inputWith(t, valid+`,"disks":[`+strings.Join(wrong, ",")+"]}"))
	var failed Errors
	if !errors.As(err, &failed) || len(failed) != maxFindings {
		t.Errorf("want %d errors, got %d", maxFindings, len(failed))
	}
	for i := range wrong {
		wrong[i] = fmt.Sprintf(`"f%d":1`, i)
	}
	inputs, err := Render(inputWith(t, valid+","+strings.Join(wrong, ",")+"}"))
	if err != nil || len(inputs.Warnings) != maxFindings {
		t.Errorf("want %d warnings, got %v, %v", maxFindings, inputs, err)
	}
}

func TestRenderRefusesAnIncompleteCall(t *testing.T) {
	if _, err := Render(Input{}); err == nil || IsFieldError(err) {
		t.Errorf("want an error that is not the Machine's, got %v", err)
	}
}

func TestRenderDoesNotChangeTheMachine(t *testing.T) {
	input := inputWith(t, valid+`,"cpu":3}`)
	before := input.Machine.DeepCopy()
	if _, err := Render(input); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, input.Machine); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKindOf(t *testing.T) {
	tests := map[string]struct {
		machine           *machinev1beta1.Machine
		wantKind, wantErr string
	}{
		"both are there": {machine: machineWith(valid + "}"), wantKind: "example.io/v1 ExampleProviderSpec"},
		"there is no value": {machine: &machinev1beta1.Machine{}, wantErr: "spec.providerSpec.value: an object is " +
			"required, but it is missing; write the providerSpec of a provider module"},
		"kind is missing": {
			machine: machineWith(`{"apiVersion":"a/v1"}`),
			wantErr: "spec.providerSpec.value.kind: a string is required, but it is missing; name a kind that a " +
				"provider module serves",
		},
		"apiVersion is a number": {
			machine: machineWith(`{"apiVersion":1,"kind":"K"}`),
			wantErr: "spec.providerSpec.value.apiVersion: a string is required, but it is a number; name a kind that " +
				"a provider module serves",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			apiVersion, kind, err := KindOf(tc.machine)
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr || !IsFieldError(err) {
					t.Errorf("want %q, got %v", tc.wantErr, err)
				}
				return
			}
			if got := apiVersion + " " + kind; err != nil || got != tc.wantKind {
				t.Errorf("want %q, got %q, %v", tc.wantKind, got, err)
			}
		})
	}
}

func TestRefs(t *testing.T) {
	tests := map[string]struct {
		providerSpec string
		want         []string
		wantErr      string
	}{
		"both are named": {providerSpec: `{"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}}`,
			want: []string{"c", "u"}},
		"user data left out": {providerSpec: `{"credentialsSecret":{"name":"c"}}`, want: []string{"c", ""}},
		"user data is null": {providerSpec: `{"credentialsSecret":{"name":"c"},"userDataSecret":null}`,
			want: []string{"c", ""}},
		"user data is empty": {providerSpec: `{"credentialsSecret":{"name":"c"},"userDataSecret":{"name":""}}`,
			want: []string{"c", ""}},
		"credentials missing": {providerSpec: `{}`, wantErr: "spec.providerSpec.value.credentialsSecret.name: the " +
			"name of a Secret is required, but it is missing; name a Secret in the Machine's namespace"},
		"credentials not an object": {
			providerSpec: `{"credentialsSecret":[]}`,
			wantErr: "spec.providerSpec.value.credentialsSecret.name: the name of a Secret is required, but it " +
				"is missing; name a Secret in the Machine's namespace",
		},
		"credentials empty": {
			providerSpec: `{"credentialsSecret":{"name":""}}`,
			wantErr: "spec.providerSpec.value.credentialsSecret.name: the name of a Secret is required, but it " +
				"is empty; name a Secret in the Machine's namespace",
		},
		"a name that is a path": {
			providerSpec: `{"credentialsSecret":{"name":"../x"}}`,
			wantErr:      `spec.providerSpec.value.credentialsSecret.name: the name of a Secret is required, not "../x"; use lower-case letters, digits, '-' and '.'`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			const kind = `{"apiVersion":"example.io/v1","kind":"ExampleProviderSpec",`
			credentials, userData, err := Refs(machineWith(strings.Replace(kind+tc.providerSpec[1:], ",}", "}", 1)),
				exampleModule(t))
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("want %q, got %v", tc.wantErr, err)
				}
				return
			}
			if got := []string{credentials.Name, userData.Name}; err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("want %q, got %q, %v", tc.want, got, err)
			}
		})
	}
}

func FuzzRender(f *testing.F) {
	seeds := []string{
		valid + "}", valid + `,"cpu":"four"}`,
		valid + `,"disks":[{"gib":1},{"gib":"2","labels":{"a":null}}],"networks":["a","a"]}`,
		valid + `,"range":[1,2],"placement":{"zone":"${x}"},"cpu":1e308}`, `{"a":{"a":[[[{}]]]}}`,
		`{"\u0000":"\ud800"}`, `[`, `1e9`, "",
	}
	for _, seed := range seeds {
		f.Add(seed, "#!/bin/sh\n")
	}
	from := exampleModule(f)
	f.Fuzz(func(t *testing.T, providerSpec, userData string) {
		input := Input{
			Machine: machineWith(providerSpec), Module: from, UserData: []byte(userData),
			Credentials: map[string][]byte{"endpoint": []byte("e"), "token": []byte("t")},
		}
		inputs, err := Render(input)
		if err != nil {
			if !IsFieldError(err) {
				t.Fatalf("want a FieldError for whatever a user writes, got %v", err)
			}
			return
		}
		if !json.Valid(inputs.Variables) {
			t.Fatalf("want JSON, got %s", inputs.Variables)
		}
		again, err := Render(input)
		if err != nil || again.Hash != inputs.Hash || string(again.Variables) != string(inputs.Variables) {
			t.Fatalf("want the same result twice, got %v", err)
		}
	})
}
