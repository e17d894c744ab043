package contract_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/moduletest"
)

func TestLoadRefusesAPlaceThatBreaksTheContract(t *testing.T) {
	const at = "module.yaml:27: spec.place[0]"
	for name, tc := range map[string]struct{ place, want string }{
		"a part without a name":    {"{name: '', field: size}", `.name is "", which cannot name a part of a place; use letters, digits, spaces and '-', 63 at most, a letter first`},
		"a name with a comma":      {"{name: 'a,b', field: size}", `.name is "a,b", which cannot name a part of a place; use letters, digits, spaces and '-', 63 at most, a letter first`},
		"a part without source":    {"{name: a}", " comes from nothing; write one of field, machine, credential, environment or awsAccountOf"},
		"a part of two sources":    {"{name: a, field: size, machine: name}", " has several sources; keep one of field, machine, credential, environment or awsAccountOf"},
		"no such field":            {"{name: a, field: sise}", `.field is "sise", which is no string or number or bool field of var.provider_spec; name the field, its parts joined by dots`},
		"an object":                {"{name: a, field: nested}", `.field is "nested", which is no string or number or bool field of var.provider_spec; name the field, its parts joined by dots`},
		"a secret field":           {"{name: a, field: apiToken}", `.field leads to "apiToken", which is a secret by its name, and a place is shown to people; name something else, or set secret: true`},
		"a UID, which is no place": {"{name: a, machine: uid}", `.machine is "uid", which is no place; write name, namespace, cluster_id`},
		"no such variable":         {"{name: a, environment: EXAMPLE_TOKEN}", `.environment is "EXAMPLE_TOKEN", which is no variable of spec.environment; name one of them; a value of the credentials Secret is a credential`},
		"no such key":              {"{name: a, credential: {key: cloud.yaml, path: [a]}}", `.credential.key is "cloud.yaml", which is none of spec.credentials.keys; write a key as it is there`},
		"a key that is not public": {"{name: a, credential: {key: token}}", `.credential.key is "token", which is not public, and a place is shown to people; set public: true for the key where it is no secret, or secret: true for the part`},
		"an empty step":            {"{name: a, credential: {key: clouds.yaml, path: ['', b]}}", `.credential.path[0] is empty; write the names that lead to the value`},
		"a step of no field":       {"{name: a, credential: {key: clouds.yaml, path: ['{clowd}', b]}}", `.credential.path[0] is "{clowd}", which names "clowd", which is no string field of var.provider_spec; write a name, and {field} for the value of a field of the providerSpec`},
		"a step of a number":       {"{name: a, credential: {key: clouds.yaml, path: ['{port}', b]}}", `.credential.path[0] is "{port}", which names "port", which is no string field of var.provider_spec; write a name, and {field} for the value of a field of the providerSpec`},
		"a brace without another":  {"{name: a, credential: {key: clouds.yaml, path: ['{a', b]}}", `.credential.path[0] is "{a", which has a { without } after it; write a name, and {field} for the value of a field of the providerSpec`},
		"a secret in a document":   {"{name: a, credential: {key: clouds.yaml, path: [clouds, password]}}", `.credential.path[1] leads to "password", which is a secret by its name, and a place is shown to people; name something else, or set secret: true`},
		"an account of no key":     {"{name: a, awsAccountOf: [token, aws]}", `.awsAccountOf[1] is "aws", which is none of spec.credentials.keys; write a key as it is there`},
		"an unknown source":        {"{name: a, field: size, region: west}", `.region is refused: unknown field "spec.place[0].region"; remove it, or correct its spelling`},
		"a name that is taken":     {"{name: a, field: size}\n    - {name: a, field: cloud}", "name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, moduletest.Placed("    - "+tc.place+"\n")...)))
			broken, ok := errors.AsType[*contract.Error](err)
			if !ok || len(broken.Breaches) != 1 {
				t.Fatalf("got %v, want one breach", err)
			}
			want := at + tc.want
			if tc.want == "name" {
				want = `module.yaml:28: spec.place[1].name is "a" a second time; give each part a name of its own`
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
	if err == nil || !strings.Contains(err.Error(), `spec.place[1].credential.key is "region", which is none of spec.credentials.keys`) || strings.Contains(err.Error(), "place[0]") {
		t.Errorf("got %v", err)
	}
}
