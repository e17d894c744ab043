package statefile

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const goodCheckpoint = `{
  "version": 3,
  "checkpoint": {
    "stack": "organization/kubemark/machine",
    "latest": {
      "manifest": {"time": "2026-11-21T08:00:00Z", "version": "v3.255.0"},
      "secrets_providers": {"type": "passphrase", "state": {"salt": "v1:abc"}},
      "resources": [
        {"urn": "urn:pulumi:machine::kubemark::pulumi:pulumi:Stack::kubemark-machine", "custom": false, "type": "pulumi:pulumi:Stack",
         "outputs": {"provider_id": "kubemark://a",
                     "token": {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}}},
        {"urn": "urn:pulumi:machine::kubemark::pulumi:providers:kubectl::default", "custom": true, "id": "p1", "type": "pulumi:providers:kubectl"},
        {"urn": "urn:pulumi:machine::kubemark::kubectl:index/manifest:Manifest::this", "custom": true, "id": "n1", "type": "kubectl:index/manifest:Manifest",
         "provider": "urn:pulumi:machine::kubemark::pulumi:providers:kubectl::default::p1"},
        {"urn": "urn:pulumi:machine::kubemark::kubectl:index/manifest:Manifest::this", "custom": true, "delete": true, "id": "n0", "type": "kubectl:index/manifest:Manifest",
         "provider": "urn:pulumi:machine::kubemark::pulumi:providers:kubectl::default::p1"},
        {"urn": "urn:pulumi:machine::kubemark::acme:index:Pool$acme:index:Disk::data", "custom": true, "taint": true, "id": "d", "type": "acme:index:Disk"},
        {"urn": "urn:pulumi:machine::kubemark::acme:index:Image::latest", "custom": true, "external": true, "id": "i", "type": "acme:index:Image"},
        {"urn": "urn:pulumi:machine::kubemark::acme:index:Pool::pool", "custom": false, "type": "acme:index:Pool"}
      ],
      "pending_operations": [
        {"type": "creating", "resource": {"urn": "urn:pulumi:machine::kubemark::acme:index:Address::a", "custom": true, "type": "acme:index:Address"}},
        {"type": "updating", "resource": {"urn": "urn:pulumi:machine::kubemark::acme:index:Disk::data", "custom": true, "type": "acme:index:Disk"}}
      ]
    }
  }
}`

func TestParseCheckpoint(t *testing.T) {
	raw, err := Checkpoint{Serial: 7, Lineage: "l1", Raw: []byte(goodCheckpoint)}.Encode()
	if err != nil {
		t.Fatalf("encoding: %v", err)
	}
	got, err := Parse(raw)
	if err != nil {
		t.Fatalf("parsing: %v", err)
	}
	const provider = "urn:pulumi:machine::kubemark::pulumi:providers:kubectl::default"
	want := &State{
		Format: FormatPulumi, Serial: 7, Lineage: "l1", EngineVersion: "v3.255.0",
		Outputs: map[string]Output{"provider_id": {Value: []byte(`"kubemark://a"`)}, "token": {Sensitive: true}},
		Resources: []Resource{
			{Mode: ModeManaged, Type: "kubectl:index/manifest:Manifest", Name: "this", Provider: provider, Instances: 2,
				Deposed: 1},
			{Mode: ModeManaged, Module: "acme:index:Pool", Type: "acme:index:Disk", Name: "data", Instances: 1,
				Tainted: 1},
			{Mode: ModeData, Type: "acme:index:Image", Name: "latest", Instances: 1},
		},
		Unfinished: []string{"urn:pulumi:machine::kubemark::acme:index:Address::a"},
	}
	secretValue := cmp.FilterPath(func(p cmp.Path) bool {
		return p.Last().String() == ".Value" && strings.Contains(p.GoString(), `"token"`)
	}, cmp.Ignore())
	if diff := cmp.Diff(want, got, secretValue, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("state differs (-want +got):\n%s", diff)
	}
	if text := got.Outputs["token"].String(); text != "(sensitive)" {
		t.Errorf("an encrypted output prints as %q", text)
	}
	again, err := ParseCheckpoint(raw)
	if err != nil || again.Serial != 7 || again.Lineage != "l1" {
		t.Errorf("ParseCheckpoint() = %+v, %v, want serial and lineage of what was encoded", again, err)
	}
}

func TestParseCheckpointRefuses(t *testing.T) {
	cases := map[string]struct {
		raw        string
		wantDetail string
	}{
		"no serial, so that a write could be an older one": {
			raw:        `{"format":"pulumi","lineage":"l1","checkpoint":` + goodCheckpoint + `}`,
			wantDetail: "it has no serial",
		},
		"no lineage, so that another Machine's would pass": {
			raw: `{"format":"pulumi","serial":1,"checkpoint":` + goodCheckpoint + `}`, wantDetail: "it has no lineage",
		},
		"a checkpoint of a version that is not known here": {
			raw:        `{"format":"pulumi","serial":1,"lineage":"l1","checkpoint":{"version":4,"checkpoint":{}}}`,
			wantDetail: "its checkpoint has version 4, not 3",
		},
		"an envelope around nothing": {
			raw:        `{"format":"pulumi","serial":1,"lineage":"l1","checkpoint":{"version":3}}`,
			wantDetail: "its checkpoint is empty",
		},
		"a resource that cannot be addressed": {
			raw:        `{"format":"pulumi","serial":1,"lineage":"l1","checkpoint":{"version":3,"checkpoint":{"latest":{"resources":[{"custom":true,"type":"a:b:C","urn":"x"}]}}}}`,
			wantDetail: "resource 0 has no type or no name in its URN",
		},
		"an unknown format": {
			raw: `{"format":"cfn","serial":1,"lineage":"l1"}`, wantDetail: "it has no version; encrypted states are " +
				"not supported",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.raw))
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || refused.Reason != ReasonCorrupt || !strings.HasSuffix(refused.Detail, tc.wantDetail) {
				t.Errorf("ParseState() = %v, want a corrupt body: %s", err, tc.wantDetail)
			}
		})
	}
}

func TestParseCheckpointOfAStackThatWasNeverRun(t *testing.T) {
	raw, err := Checkpoint{Serial: 1, Lineage: "l1",
		Raw: []byte(`{"version":3,"checkpoint":{"stack":"organization/kubemark/machine"}}`)}.Encode()
	if err != nil {
		t.Fatalf("encoding: %v", err)
	}
	got, err := Parse(raw)
	if err != nil || len(got.Managed()) != 0 {
		t.Errorf("ParseState() = %+v, %v, want a state without resources", got, err)
	}
}

func TestEncodeRefusesWhatIsNoCheckpoint(t *testing.T) {
	for _, raw := range []string{``, `{`, `[]`, `{"version":3}`} {
		if _, err := (Checkpoint{Serial: 1, Lineage: "l1", Raw: []byte(raw)}).Encode(); err == nil {
			t.Errorf("Encode() of %q succeeds, want a refusal: it could not be read back", raw)
		}
	}
}
