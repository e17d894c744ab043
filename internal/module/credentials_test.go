package module

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			got, err := ExpandKey(tc.key, func(path string) (string, error) {
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
	const mend = "use letters, digits, '-', '_' and '.', and {field} for the value of a field of the providerSpec"
	const at = "module.yaml:11: spec.credentials.keys[0].key "
	for name, tc := range map[string]struct {
		key, want string
	}{
		"a string":                {key: "{size}.token"},
		"a string in an object":   {key: "{credentialsSecret.name}.token"},
		"no field":                {key: "{sise}.token", want: at + `is "{sise}.token", but "sise" is no string field of var.provider_spec; name the field, its parts joined by dots`},
		"no name":                 {key: "{}.token", want: at + `is "{}.token", but "" is no string field of var.provider_spec; name the field, its parts joined by dots`},
		"a list":                  {key: "{disks}.token", want: at + `is "{disks}.token", but "disks" is no string field of var.provider_spec; name the field, its parts joined by dots`},
		"a brace without another": {key: "{size.token", want: at + `is "{size.token", which has a { without } after it; ` + mend},
		"what no key can hold":    {key: "{size}/token", want: at + `is "{size}/token", which cannot be a key of a Secret; ` + mend},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(asFS(changed(t, change{"module.yaml", "- key: token", `- key: "` + tc.key + `"`})))
			var lines []string
			if broken, ok := errors.AsType[*ContractError](err); ok {
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
