package contract_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestLoadRefusesAPlaceThatBreaksTheContract(t *testing.T) {
	const at = "module.yaml:27: spec.place[0]"
	for name, tc := range map[string]struct{ place, want string }{
		"a part without a name":                  {"{name: '', field: size}", `.name is "", which is not a valid name for a part of a place; use letters, digits, spaces and '-', at most 63, starting with a letter`},
		"a name with a comma":                    {"{name: 'a,b', field: size}", `.name is "a,b", which is not a valid name for a part of a place; use letters, digits, spaces and '-', at most 63, starting with a letter`},
		"a part without source":                  {"{name: a}", " has no source; use one of field, machine, credential, environment or awsAccountOf"},
		"a part of two sources":                  {"{name: a, field: size, machine: name}", " has several sources; keep one of field, machine, credential, environment or awsAccountOf"},
		"no such field":                          {"{name: a, field: sise}", `.field is "sise", which is not a string or number or bool field of var.provider_spec; write the path of the field, joined by dots`},
		"an object":                              {"{name: a, field: nested}", `.field is "nested", which is not a string or number or bool field of var.provider_spec; write the path of the field, joined by dots`},
		"a secret field":                         {"{name: a, field: apiToken}", `.field leads to "apiToken", which is named like a secret, but users can see a place; use another value, or set secret: true`},
		"a UID, which does not identify a place": {"{name: a, machine: uid}", `.machine is "uid", which does not identify a place; write name, namespace, cluster_id`},
		"no such variable":                       {"{name: a, environment: EXAMPLE_TOKEN}", `.environment is "EXAMPLE_TOKEN", which is not a variable of spec.environment; use one of them; a value of the credentials Secret is a credential`},
		"no such key":                            {"{name: a, credential: {key: cloud.yaml, path: [a]}}", `.credential.key is "cloud.yaml", which is not in spec.credentials.keys; use a key exactly as it is there`},
		"a key that is not public":               {"{name: a, credential: {key: token}}", `.credential.key is "token", which is not public, but users can see a place; set public: true for the key if it is not secret, or secret: true for the part`},
		"an empty step":                          {"{name: a, credential: {key: clouds.yaml, path: ['', b]}}", `.credential.path[0] is empty; write the names that lead to the value`},
		"a step of no field":                     {"{name: a, credential: {key: clouds.yaml, path: ['{clowd}', b]}}", `.credential.path[0] is "{clowd}", which names "clowd", which is not a string field of var.provider_spec; use names, and {field} for the value of a field of the providerSpec`},
		"a step of a number":                     {"{name: a, credential: {key: clouds.yaml, path: ['{port}', b]}}", `.credential.path[0] is "{port}", which names "port", which is not a string field of var.provider_spec; use names, and {field} for the value of a field of the providerSpec`},
		"a brace without another":                {"{name: a, credential: {key: clouds.yaml, path: ['{a', b]}}", `.credential.path[0] is "{a", which has a { without } after it; use names, and {field} for the value of a field of the providerSpec`},
		"a secret in a document":                 {"{name: a, credential: {key: clouds.yaml, path: [clouds, password]}}", `.credential.path[1] leads to "password", which is named like a secret, but users can see a place; use another value, or set secret: true`},
		"an account of no key":                   {"{name: a, awsAccountOf: [token, aws]}", `.awsAccountOf[1] is "aws", which is not in spec.credentials.keys; use a key exactly as it is there`},
		"an unknown source":                      {"{name: a, field: size, region: west}", `.region is invalid: unknown field "spec.place[0].region"; remove it, or correct the spelling`},
		"a name that is taken":                   {"{name: a, field: size}\n    - {name: a, field: cloud}", "name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, moduletest.Placed("    - "+tc.place+"\n")...)))
			broken, ok := errors.AsType[*contract.Error](err)
			if !ok || len(broken.Breaches) != 1 {
				t.Fatalf("got %v, want one breach", err)
			}
			want := at + tc.want
			if tc.want == "name" {
				want = `module.yaml:28: spec.place[1].name uses "a" twice; give each part a unique name`
			}
			if got := broken.Breaches[0].String(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestAPlaceNeedsNoCredentials(t *testing.T) {
	_, err := load.Module(moduletest.FS(moduletest.Changed(t,
		moduletest.Change{"module.yaml", "  credentials:\n    keys:\n      - key: token\n        env: EXAMPLE_TOKEN\n      - key: region\n        env: EXAMPLE_REGION\n        optional: true\n        public: true\n", ""},
		moduletest.Change{"module.yaml", "  capacity:\n", "  place: [{name: a, field: size}, {name: b, credential: {key: region}}]\n  capacity:\n"})))
	if err == nil || !strings.Contains(err.Error(), `spec.place[1].credential.key is "region", which is not in spec.credentials.keys`) || strings.Contains(err.Error(), "place[0]") {
		t.Errorf("got %v", err)
	}
}
