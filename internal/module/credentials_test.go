package module_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestExpandKey(t *testing.T) {
	for name, tc := range map[string]struct {
		key, want, wantErr string
	}{
		"without a field":         {key: "token", want: "token"},
		"a field":                 {key: "{server}.username", want: "<server>.username"},
		"fields, and text around": {key: "a-{x.y}-{z}-b", want: "a-<x.y>-<z>-b"},
		"an opening brace alone":  {key: "a{server", wantErr: "has a { without } after it"},
		"a brace in a brace":      {key: "{a{b}}", wantErr: "has a { without } after it"},
		"a closing brace alone":   {key: "server}.a", wantErr: "has a } without a { before it"},
		"a closing brace at last": {key: "{server}}", wantErr: "has a } without a { before it"},
		"a field without a value": {key: "{odd}", wantErr: "no such field"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := module.ExpandKey(tc.key, func(path string) (string, error) {
				if path == "odd" {
					return "", errors.New("no such field")
				}
				return "<" + path + ">", nil
			})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tc.want || text != tc.wantErr {
				t.Errorf("got %q, %q; want %q, %q", got, text, tc.want, tc.wantErr)
			}
		})
	}
}

func TestKeysOfCredentialsNameFieldsOfTheProviderSpec(t *testing.T) {
	const fix = "use letters, digits, '-', '_' and '.', and {field} for the value of a field of the providerSpec"
	const at = "module.yaml:11: spec.credentials.keys[0].key "
	for name, tc := range map[string]struct {
		key, want string
	}{
		"a string":                {key: "{size}.token"},
		"a string in an object":   {key: "{credentialsSecret.name}.token"},
		"no field":                {key: "{sise}.token", want: at + `is "{sise}.token", but "sise" is not a string field of var.provider_spec; write the path of the field, joined by dots`},
		"no name":                 {key: "{}.token", want: at + `is "{}.token", but "" is not a string field of var.provider_spec; write the path of the field, joined by dots`},
		"a list":                  {key: "{disks}.token", want: at + `is "{disks}.token", but "disks" is not a string field of var.provider_spec; write the path of the field, joined by dots`},
		"a brace without another": {key: "{size.token", want: at + `is "{size.token", which has a { without } after it; ` + fix},
		"what no key can hold":    {key: "{size}/token", want: at + `is "{size}/token", which is not a valid key of a Secret; ` + fix},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, moduletest.Change{"module.yaml", "- key: token", `- key: "` + tc.key + `"`})))
			var lines []string
			if broken, ok := errors.AsType[*contract.Error](err); ok {
				for _, breach := range broken.Breaches {
					lines = append(lines, breach.String())
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	keys := []v1alpha1.CredentialKey{
		{Key: "config", File: "CONFIG_FILE", Optional: true, Matches: []string{`user = \w+\n`, `#.*\n`}},
		{Key: "user", Env: "USER", Unless: "config"},
		{Key: "endpoint", Env: "ENDPOINT", Optional: true, Matches: []string{`https://[^/]*`}},
		{Key: "logins", Path: []string{"0", "data", "user"}, Env: "LOGIN", Optional: true},
		{Key: "logins", Path: []string{"0", "data", "port"}, Env: "PORT", Optional: true},
	}
	for name, tc := range map[string]struct {
		data                       map[string]string
		wantEnvironment, wantFiles map[string]string
		wantFaults                 []string
	}{
		"a value":                           {data: map[string]string{"user": "u"}, wantEnvironment: map[string]string{"USER": "u"}},
		"what gives way":                    {data: map[string]string{"user": "u", "config": "user = v\n"}, wantFiles: map[string]string{"CONFIG_FILE": "user = v\n"}},
		"what gives way need not be there":  {data: map[string]string{"config": "user = v\n"}, wantFiles: map[string]string{"CONFIG_FILE": "user = v\n"}},
		"an empty key is no reason to":      {data: map[string]string{"user": "u", "config": ""}, wantEnvironment: map[string]string{"USER": "u"}},
		"texts that match, in any order":    {data: map[string]string{"config": "# a\nuser = v\n# b\n"}, wantFiles: map[string]string{"CONFIG_FILE": "# a\nuser = v\n# b\n"}},
		"a key that is missing":             {wantFaults: []string{`the Secret needs the key "user", but it is missing; add it to the Secret's data`}},
		"a key that is empty":               {data: map[string]string{"user": ""}, wantFaults: []string{`the Secret needs the key "user", but it is empty; add it to the Secret's data`}},
		"a value that no variable can hold": {data: map[string]string{"user": "u\x00"}, wantFaults: []string{`the key "user" of the Secret contains a NUL byte, which an environment variable cannot; use text`}},
		"more than what matches": {
			data:       map[string]string{"config": "user = v\nrun = sh\n"},
			wantFaults: []string{`the key "config" of the Secret has a value that the module does not accept; write only what the module's README says`},
		},
		"parts of what a key holds": {
			data:            map[string]string{"user": "u", "logins": `[{"data": {"user": "a", "port": 9440}}]`},
			wantEnvironment: map[string]string{"USER": "u", "LOGIN": "a", "PORT": "9440"},
		},
		"a part that is a list, and one that is not there": {
			data:            map[string]string{"user": "u", "logins": `[{"data": {"port": [1]}}]`},
			wantEnvironment: map[string]string{"USER": "u"},
		},
		"a list that is too short": {data: map[string]string{"user": "u", "logins": `[]`}, wantEnvironment: map[string]string{"USER": "u"}},
		"parts of what is no document": {
			data: map[string]string{"user": "u", "logins": `{hunter2`},
			wantFaults: []string{
				`the key "logins" of the Secret is neither YAML nor JSON; write it as the module's README says`,
				`the key "logins" of the Secret is neither YAML nor JSON; write it as the module's README says`,
			},
			wantEnvironment: map[string]string{"USER": "u"},
		},
		"a match is of the whole value": {
			data:            map[string]string{"user": "u", "endpoint": "https://host/path"},
			wantFaults:      []string{`the key "endpoint" of the Secret has a value that the module does not accept; write only what the module's README says`},
			wantEnvironment: map[string]string{"USER": "u"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range tc.data {
				data[key] = []byte(value)
			}
			environment, files, faults := module.ReadCredentials(keys, data)
			var reported []string
			for _, fault := range faults {
				reported = append(reported, fault.String())
			}
			if diff := cmp.Diff(tc.wantEnvironment, environment, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantFiles, files, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantFaults, reported); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPartOfAKeyIsNeeded(t *testing.T) {
	keys := []v1alpha1.CredentialKey{
		{Key: "logins", Path: []string{"0", "user"}, Env: "LOGIN", Public: true}, {Key: "logins", Path: []string{"0", "password"}, Env: "PASSWORD"},
	}
	data := map[string][]byte{"logins": []byte(`[{"user": "u", "password": ""}]`)}
	environment, _, faults := module.ReadCredentials(keys, data)
	want := []module.CredentialFault{{Problem: `the key "logins" of the Secret has no value at 0.password`, Fix: "write it as the module's README says"}}
	if diff := cmp.Diff(want, faults); diff != "" || environment["LOGIN"] != "u" {
		t.Errorf("environment %v, faults (-want +got):\n%s", environment, diff)
	}
	data["logins"] = []byte(`[{"user": "u", "password": "hush"}]`)
	if diff := cmp.Diff([]string{"hush"}, module.SecretParts(keys, data)); diff != "" {
		t.Errorf("what must not be shown (-want +got):\n%s", diff)
	}
}

func TestHides(t *testing.T) {
	keys := []v1alpha1.CredentialKey{{Key: "server", Public: true}, {Key: "pin"}, {Key: "doc", Public: true, Path: []string{"a"}}, {Key: "user"}}
	for name, want := range map[string]bool{
		"server": false, "pin": true, "doc": true, // of the module
		"user":      true, // though its name is that of a public key
		"namespace": false, "ca.crt": false, "username": false, "note": true, "host": true, "admin-password": true,
	} {
		if got := module.Hides(keys, name); got != want {
			t.Errorf("Hides(%s) = %t, want %t", name, got, want)
		}
	}
}
