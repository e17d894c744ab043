package module_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

const (
	placeVariables = `{"machine": {"name": "m", "cluster_id": "c1"}, "provider_spec": {"size": "small", "cloud": "one", "shared": true, "port": 12345678901234567890,
  "apiToken": "s3cr3t", "nested": null}, "user_data": ""}`
	cloudsYAML = `clouds:
  one:
    auth: {auth_url: "https://Keystone.example.com:5000/v3/", password: hunter2, project_name: demo}
    region_name: 7
  two: {auth: {auth_url: "https://user:hunter2@other:5000/v3?token=hunter2&a=b"}}
`
)

func TestPlace(t *testing.T) {
	const path = "    - {name: part, credential: {key: clouds.yaml, path: [clouds, \"{cloud}\", "
	for name, tc := range map[string]struct {
		place, variables string
		credentials      map[string]string
		want, wantErr    string
	}{
		"a text":                        {place: "    - {name: part, field: size}\n", want: "small"},
		"a bool":                        {place: "    - {name: part, field: shared}\n", want: "true"},
		"a number, exact":               {place: "    - {name: part, field: port}\n", want: "12345678901234567890"},
		"a part that may be missing is": {place: "    - {name: part, field: nested.zone, optional: true}\n"},
		"a part that may not be missing is": {
			place:   "    - {name: part, field: nested.zone}\n",
			wantErr: `the part "part" of the instance's place: the field nested.zone of the providerSpec has no value; set or correct its value`,
		},
		"a secret is hashed":         {place: "    - {name: part, field: apiToken, secret: true}\n", want: "sha256:4e738ca5563c06cf"},
		"of the Machine":             {place: "    - {name: part, machine: cluster_id}\n", want: "c1"},
		"a Machine that is without":  {place: "    - {name: part, machine: namespace}\n", wantErr: `the part "part" of the instance's place: the Machine has no namespace; set or correct its value`},
		"of the environment":         {place: "    - {name: part, environment: EXAMPLE_QUIET}\n", want: "from the run"},
		"a URL in one form":          {place: path + "auth, auth_url]}}\n", want: "https://keystone.example.com:5000/v3"},
		"a number in YAML":           {place: path + "region_name]}}\n", want: "7"},
		"no password of a URL":       {place: path + "auth, auth_url]}}\n", variables: strings.Replace(placeVariables, "one", "two", 1), want: "https://user@other:5000/v3?a=b"},
		"an entry that there is not": {place: path + "auth, auth_url]}}\n", variables: strings.Replace(placeVariables, "one", "six", 1), wantErr: `the part "part" of the instance's place: the key "clouds.yaml" of the credentials Secret has no value at clouds.six.auth.auth_url; set or correct its value`},
		"an object is no value":      {place: path + "auth]}, optional: true}\n"},
		"what is no YAML": {
			place: path + "auth, auth_url]}}\n", credentials: map[string]string{"clouds.yaml": "{hunter2"},
			wantErr: `the part "part" of the instance's place: the key "clouds.yaml" of the credentials Secret is neither YAML nor JSON; set or correct its value`,
		},
		"JSON": {place: path + "url]}}\n", credentials: map[string]string{"clouds.yaml": `{"clouds": {"one": {"url": "x"}}}`}, want: "x"},
		"a field in braces without a value": {
			place: path + "url]}}\n", variables: strings.Replace(placeVariables, `"one"`, `""`, 1),
			wantErr: `the part "part" of the instance's place: the field cloud of the providerSpec has no value; set or correct its value`,
		},
		"a key that a field names":    {place: "    - {name: part, credential: {key: \"{size}.id\"}, secret: true}\n", credentials: map[string]string{"small.id": "x"}, want: "sha256:2d711642b726b044"},
		"a public key":                {place: "    - {name: part, credential: {key: region}}\n", credentials: map[string]string{"region": "  west\n"}, want: "west"},
		"a key that gives way":        {place: "    - {name: part, credential: {key: plain}, secret: true, optional: true}\n", credentials: map[string]string{"plain": "x", "clouds.yaml": "y"}},
		"a key that need not":         {place: "    - {name: part, credential: {key: plain}, secret: true, optional: true}\n", credentials: map[string]string{"plain": "x"}, want: "sha256:2d711642b726b044"},
		"a key that is missing":       {place: "    - {name: part, credential: {key: region}}\n", credentials: map[string]string{}, wantErr: `the part "part" of the instance's place: the credentials Secret has no value for the key "region"; set or correct its value`},
		"several lines are not shown": {place: "    - {name: part, credential: {key: region}}\n", credentials: map[string]string{"region": "a\nb"}, want: "sha256:7e18f737311b2dc3"},
		"a long value is not shown":   {place: "    - {name: part, credential: {key: region}}\n", credentials: map[string]string{"region": strings.Repeat("a", 257)}, want: "sha256:e8d95cc2b4bc198c"},
		"an account of AWS":           {place: "    - {name: part, awsAccountOf: [region, token]}\n", credentials: map[string]string{"token": "ASIAQNZGKIQY56JQ7WML"}, want: "029608264753"},
		"an account that is unknown":  {place: "    - {name: part, awsAccountOf: [token]}\n", credentials: map[string]string{"token": "hunter2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.variables == "" {
				tc.variables = placeVariables
			}
			credentials := map[string][]byte{}
			if tc.credentials == nil {
				tc.credentials = map[string]string{"clouds.yaml": cloudsYAML}
			}
			for key, value := range tc.credentials {
				credentials[key] = []byte(value)
			}
			place, err := module.PlaceOf(moduletest.Load(t, moduletest.Placed(tc.place)...), []byte(tc.variables), credentials, map[string]string{"EXAMPLE_QUIET": "from the run"})
			if tc.wantErr != "" {
				if _, ok := errors.AsType[*module.PlaceError](err); !ok || err.Error() != tc.wantErr {
					t.Errorf("got %v and\n%v, want\n%s", place, err, tc.wantErr)
				}
				return
			}
			if diff := cmp.Diff(module.Place{{Name: "part", Value: tc.want}}, place); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAModuleWithoutAPlaceHasNone(t *testing.T) {
	if place, err := module.PlaceOf(moduletest.Load(t), []byte("{}"), nil, nil); place != nil || err != nil {
		t.Errorf("got %v, %v", place, err)
	}
}

func TestPlaceOfBrokenVariablesShowsNone(t *testing.T) {
	_, err := module.PlaceOf(moduletest.Load(t, moduletest.Placed("    - {name: part, field: size}\n")...), []byte(`{"user_data": hunter2}`), nil, nil)
	if err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v", err)
	}
}

func TestPlacesAreSortedAndKept(t *testing.T) {
	loaded := moduletest.Load(t, moduletest.Placed("    - {name: size, field: size}\n    - {name: cloud, field: cloud}\n    - {name: zone, field: nested.zone, optional: true}\n")...)
	place, err := module.PlaceOf(loaded, []byte(placeVariables), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(place)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"name":"cloud","value":"one"},{"name":"size","value":"small"},{"name":"zone"}]`; string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	var kept module.Place
	if err := json.Unmarshal(raw, &kept); err != nil || !kept.Equal(place) || !slices.Equal(kept, place) {
		t.Errorf("read back as %v (%v)", kept, err)
	}
	if got, want := place.String(), "cloud one, size small"; got != want {
		t.Errorf("it is shown as %q, want %q", got, want)
	}
	if got, want := (module.Place{{Name: "zone"}}).String(), "an unknown place"; got != want {
		t.Errorf("it is shown as %q, want %q", got, want)
	}
}

func TestPlacesThatDiffer(t *testing.T) {
	made := module.Place{{Name: "account", Value: "1"}, {Name: "region", Value: "west"}}
	for name, tc := range map[string]struct {
		now         module.Place
		want        string
		contradicts bool
	}{
		"the same":                   {now: module.Place{{Name: "account", Value: "1"}, {Name: "region", Value: "west"}}},
		"another value":              {now: module.Place{{Name: "account", Value: "1"}, {Name: "region", Value: "east"}}, want: "region was west and is now east", contradicts: true},
		"several":                    {now: module.Place{{Name: "account", Value: "2"}, {Name: "region", Value: "east"}}, want: "account was 1 and is now 2, region was west and is now east", contradicts: true},
		"no more known":              {now: module.Place{{Name: "account", Value: ""}, {Name: "region", Value: "west"}}, want: "account was 1 and is now unknown"},
		"no more declared":           {now: module.Place{{Name: "region", Value: "west"}}, want: "account was 1 and is now unknown"},
		"declared since":             {now: module.Place{{Name: "account", Value: "1"}, {Name: "host", Value: "h"}, {Name: "region", Value: "west"}}, want: "host was unknown and is now h"},
		"declared since, unknown":    {now: module.Place{{Name: "account", Value: "1"}, {Name: "host", Value: ""}, {Name: "region", Value: "west"}}},
		"unknown there, other there": {now: module.Place{{Name: "account", Value: ""}, {Name: "region", Value: "east"}}, want: "account was 1 and is now unknown, region was west and is now east", contradicts: true},
		"nothing known":              {want: "account was 1 and is now unknown, region was west and is now unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := made.Diff(tc.now); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if made.Equal(tc.now) != (tc.want == "") || tc.now.Equal(made) != (tc.want == "") {
				t.Errorf("equal: %t and %t", made.Equal(tc.now), tc.now.Equal(made))
			}
			if made.Contradicts(tc.now) != tc.contradicts || tc.now.Contradicts(made) != tc.contradicts {
				t.Errorf("they contradict: %t and %t, want %t", made.Contradicts(tc.now), tc.now.Contradicts(made), tc.contradicts)
			}
		})
	}
}

func TestAnAccountSurvivesARenewedKey(t *testing.T) {
	loaded := moduletest.Load(t, moduletest.Placed("    - {name: account, awsAccountOf: [token]}\n")...)
	place := func(key string) module.Place {
		found, err := module.PlaceOf(loaded, []byte(placeVariables), map[string][]byte{"token": []byte(key)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := place("ASIAQNZGKIQY56JQ7WML")
	if after := place("AKIAQNZGKIQYZZZZZZZZ"); !before.Equal(after) {
		t.Errorf("a key of the same account: %s", before.Diff(after))
	}
	if after := place("ASIAY34FZKBOKMUTVV7A"); !before.Contradicts(after) {
		t.Errorf("a key of another account: %s", before.Diff(after))
	}
	if after := place("AKIAIOSFODNN7EXAMPLE"); before.Contradicts(after) || before.Equal(after) {
		t.Errorf("a key without an account: %s", before.Diff(after))
	}
}

func TestARestoredModuleHasItsPlace(t *testing.T) {
	restored, err := load.Restore(moduletest.Load(t, moduletest.Placed("    - {name: size, field: size}\n")...).Files())
	if err != nil {
		t.Fatal(err)
	}
	if place, err := module.PlaceOf(restored, []byte(placeVariables), nil, nil); err != nil || place.String() != "size small" {
		t.Errorf("got %v, %v", place, err)
	}
}
