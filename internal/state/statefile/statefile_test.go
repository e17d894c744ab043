package statefile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodState = `{
  "version": 4, "terraform_version": "1.12.6", "serial": 7, "lineage": "l1",
  "outputs": {
    "provider_id": {"value": "kwok://a", "type": "string"},
    "token": {"value": "secret-value", "type": "string", "sensitive": true}
  },
  "resources": [
    {"mode": "managed", "type": "kubectl_manifest", "name": "this", "provider": "p",
     "instances": [{"attributes": {"id": "1"}}, {"status": "tainted"}, {"deposed": "0a1b2c3d"}]},
    {"module": "module.net[0]", "mode": "managed", "type": "net", "name": "empty", "provider": "p", "instances": []},
    {"mode": "data", "type": "image", "name": "latest", "provider": "p", "instances": [{}]}
  ]
}`

func TestParseState(t *testing.T) {
	got, err := Parse([]byte(goodState))
	if err != nil {
		t.Fatalf("parsing: %v", err)
	}
	want := &State{
		Serial: 7, Lineage: "l1", EngineVersion: "1.12.6",
		Outputs: map[string]Output{
			"provider_id": {Value: []byte(`"kwok://a"`), Type: []byte(`"string"`)},
			"token":       {Value: []byte(`"secret-value"`), Type: []byte(`"string"`), Sensitive: true},
		},
		Resources: []Resource{
			{Mode: ModeManaged, Type: "kubectl_manifest", Name: "this", Provider: "p", Instances: 3, Tainted: 1,
				Deposed: 1},
			{Module: "module.net[0]", Mode: ModeManaged, Type: "net", Name: "empty", Provider: "p"},
			{Mode: ModeData, Type: "image", Name: "latest", Provider: "p", Instances: 1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state differs (-want +got):\n%s", diff)
	}
	addresses := []string{}
	for _, resource := range got.Resources {
		addresses = append(addresses, resource.Address())
	}
	if diff := cmp.Diff([]string{"kubectl_manifest.this", "module.net[0].net.empty", "data.image.latest"},
		addresses); diff != "" {
		t.Errorf("addresses differ (-want +got):\n%s", diff)
	}
	if managed := got.Managed(); len(managed) != 1 || managed[0].Name != "this" {
		t.Errorf("managed resources are %v, want only the one with instances", managed)
	}
	if text := fmt.Sprint(got.Outputs["token"]); text != "(sensitive)" {
		t.Errorf("a sensitive output prints as %q", text)
	}
}

func TestParseStateRefusesWhatIsNoState(t *testing.T) {
	cases := map[string]struct {
		body       string
		wantDetail string
	}{
		"an empty body":        {body: " \n", wantDetail: "empty"},
		"a body cut short":     {body: goodState[:200], wantDetail: "invalid JSON at byte"},
		"bytes behind the end": {body: goodState + "x", wantDetail: "invalid JSON at byte"},
		"an encrypted state": {body: `{"serial":1,"lineage":"l","encrypted_data":"x"}`,
			wantDetail: "encrypted"},
		"version 3": {body: `{"version":3,"serial":1,"lineage":"l"}`, wantDetail: "version 3"},
		"no serial": {body: `{"version":4,"lineage":"l"}`, wantDetail: "no serial"},
		"a negative serial": {body: `{"version":4,"serial":-1,"lineage":"l"}`,
			wantDetail: `"serial" has the wrong type`},
		"no lineage": {body: `{"version":4,"serial":1}`, wantDetail: "no lineage"},
		"a list":     {body: `[1]`, wantDetail: "wrong type"},
		"null":       {body: `null`, wantDetail: "no version"},
		"a resource of an unknown mode": {
			body:       `{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"x","type":"t","name":"n"}]}`,
			wantDetail: "resource 0"},
		"a resource without a type": {
			body:       `{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"managed","name":"n"}]}`,
			wantDetail: "resource 0"},
		"outputs of the wrong shape": {body: `{"version":4,"serial":1,"lineage":"l","outputs":{"a":"top-secret"}}`,
			wantDetail: "wrong type"},
		"resources that are not a list": {
			body: `{"version":4,"serial":1,"lineage":"l","resources":{"a":"top-secret"}}`, wantDetail: "wrong type"},
		"a web page instead of the state": {body: `<html>top-secret</html>`, wantDetail: "invalid JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.body))
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || refused.Reason != ReasonCorrupt {
				t.Fatalf("got %v, want a RefusedError for corruption", err)
			}
			if !strings.Contains(refused.Detail, tc.wantDetail) {
				t.Errorf("detail is %q, want it to name %q", refused.Detail, tc.wantDetail)
			}
			if strings.Contains(err.Error(), "top-secret") {
				t.Errorf("the error quotes the state: %v", err)
			}
		})
	}
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte(goodState))
	f.Add(
		[]byte(
			`{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"managed","type":"t","name":"n","instances":[{}]}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		parsed, err := Parse(body)
		if (parsed == nil) == (err == nil) {
			t.Fatalf("got %v and %v, want one of them", parsed, err)
		}
		if _, ok := errors.AsType[*RefusedError](err); err != nil && !ok {
			t.Fatalf("got %v, want a RefusedError", err)
		}
		if parsed != nil && parsed.Lineage == "" {
			t.Fatal("a state without a lineage passed")
		}
	})
}
