package render

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// namedModule returns the example whose token's key contains a field of the providerSpec.
func namedModule(t *testing.T) *module.Module {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	description := filepath.Join(folder, "module.yaml")
	named := strings.Replace(readFile(t, description), "key: token", `key: "{placement.zone}.token"`, 1)
	if err := os.WriteFile(description, []byte(named), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := load.Module(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestAKeyOfTheCredentialsIsNamedByAField(t *testing.T) {
	for name, tc := range map[string]struct {
		rest, key, wantErr string
		// inSecret means that the error is in the Secret, which Check does not read.
		inSecret bool
	}{
		"it is read from there": {rest: `,"placement":{"zone":"a.example.com"}}`, key: "a.example.com.token"},
		"the Secret has another zone": {rest: `,"placement":{"zone":"a"}}`, key: "b.token", inSecret: true,
			wantErr: `spec.providerSpec.value.credentialsSecret.name: the Secret needs the key "a.token", but it is missing; add it to the Secret's data`},
		"the field is left out": {rest: `}`, key: "a.token",
			wantErr: `spec.providerSpec.value.placement.zone: the key "{placement.zone}.token" of the credentials Secret is named after it, but it is missing or empty; write it`},
		"the field is empty": {rest: `,"placement":{"zone":""}}`, key: "a.token",
			wantErr: `spec.providerSpec.value.placement.zone: the key "{placement.zone}.token" of the credentials Secret is named after it, but it is missing or empty; write it`},
		"the field fits no key": {rest: `,"placement":{"zone":"a:443"}}`, key: "a.token",
			wantErr: `spec.providerSpec.value.placement.zone: the key "{placement.zone}.token" of the credentials Secret is named after it, but "a:443" cannot be part of one; use letters, digits, '-', '_' and '.'`},
		"an error is reported once": {rest: `,"placement":{"zone":[]}}`, key: "a.token",
			wantErr: `spec.providerSpec.value.placement.zone: a string is required, but it is a list; write it as zone: "text"`},
	} {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, valid+tc.rest)
			input.Module = namedModule(t)
			delete(input.Credentials, "token")
			input.Credentials[tc.key] = []byte("t0p-secret")
			inputs, err := Render(input)
			if diff := cmp.Diff(tc.wantErr, textOf(err)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			checkErr := tc.wantErr
			if tc.inSecret {
				checkErr = ""
			}
			_, err = Check(input)
			if diff := cmp.Diff(checkErr, textOf(err)); diff != "" {
				t.Errorf("Check (-want +got):\n%s", diff)
			}
			keys, err := CredentialKeys(input.Machine, input.Module)
			if diff := cmp.Diff(checkErr, textOf(err)); diff != "" {
				t.Errorf("CredentialKeys (-want +got):\n%s", diff)
			}
			if tc.wantErr != "" {
				return
			}
			if keys[1].Key != tc.key || inputs.Environment["EXAMPLE_TOKEN"] != "t0p-secret" ||
				!slices.Contains(inputs.Sensitive, "t0p-secret") {
				t.Errorf("keys %+v, environment %v, sensitive %v; want %s read and kept", keys, inputs.Environment,
					inputs.Sensitive, tc.key)
			}
			if slices.Contains(inputs.Sensitive, "https://example.com") {
				t.Error("a key that is public is kept from messages")
			}
		})
	}
}

func TestAKeyOfTheCredentialsBecomesAFile(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	description := filepath.Join(folder, "module.yaml")
	changed := strings.Replace(readFile(t, description), "env: EXAMPLE_TOKEN", "file: EXAMPLE_TOKEN_FILE", 1)
	if err := os.WriteFile(description, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := load.Module(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	input := inputWith(t, valid+`}`)
	input.Module = loaded
	input.Credentials["token"] = []byte("t0p\x00secret")
	inputs, err := Render(input)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"EXAMPLE_TOKEN_FILE": "t0p\x00secret"}, inputs.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, set := inputs.Environment["EXAMPLE_TOKEN_FILE"]; set || !slices.Contains(inputs.Sensitive, "t0p\x00secret") {
		t.Errorf("environment %v, sensitive %v; want the value in the file only, and kept", inputs.Environment,
			inputs.Sensitive)
	}
	if strings.Contains(string(inputs.Variables), "t0p") {
		t.Errorf("the variables hold the value: %s", inputs.Variables)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
