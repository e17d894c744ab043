package pulumi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	urnStack    = "urn:pulumi:machine::acme::pulumi:pulumi:Stack::acme-machine"
	urnProvider = "urn:pulumi:machine::acme::pulumi:providers:acme::default"
	urnThis     = "urn:pulumi:machine::acme::acme:index:Server::this"
)

func checkpointOf(latest string) []byte {
	return fmt.Appendf(nil, `{"version":3,"features":["x"],"checkpoint":{"stack":"organization/acme/machine","latest":%s}}`, latest)
}

func stackResource() string {
	return fmt.Sprintf(`{"urn":%q,"custom":false,"type":"pulumi:pulumi:Stack","outputs":{"provider_id":"a"}}`, urnStack)
}

func providerResource(id string) string {
	return fmt.Sprintf(`{"urn":%q,"custom":true,"id":%q,"type":"pulumi:providers:acme"}`, urnProvider, id)
}

func thisResource(provider, more string) string {
	return fmt.Sprintf(`{"urn":%q,"custom":true,"id":"s1","type":"acme:index:Server","provider":"%s::%s","outputs":{"uid":"u1"}%s}`, urnThis, urnProvider, provider, more)
}

func latestOf(resources ...string) string {
	return `{"manifest":{"version":"v3"},"resources":[` + strings.Join(resources, ",") + `]}`
}

var lookup = checkpointOf(latestOf(stackResource(), providerResource("p9"), thisResource("p9", `,"external":true`)))

func TestAdopt(t *testing.T) {
	pendingThis := fmt.Sprintf(`[{"type":"creating","resource":{"urn":%q,"custom":true,"type":"acme:index:Server"}},
		{"type":"deleting","resource":{"urn":"urn:pulumi:machine::acme::acme:index:Disk::d","custom":true,"type":"acme:index:Disk"}}]`, urnThis)
	cases := map[string]struct {
		checkpoint, lookup []byte
		want               []string
		wantPending        int
	}{
		"a create that was cut off: the object takes the place of the pending operation, with the provider that is there": {
			checkpoint: checkpointOf(`{"manifest":{},"resources":[` + stackResource() + `,` + providerResource("p1") + `],"pending_operations":` + pendingThis + `}`),
			lookup:     lookup, want: []string{urnStack, urnProvider + " p1", urnThis + " " + urnProvider + "::p1"}, wantPending: 1,
		},
		"nothing is known yet: stack and provider come with the object": {
			checkpoint: emptyCheckpoint("acme"), lookup: lookup,
			want: []string{urnStack, urnProvider + " p9", urnThis + " " + urnProvider + "::p9"},
		},
		"there is no checkpoint: that is nothing known": {
			lookup: lookup, want: []string{urnStack, urnProvider + " p9", urnThis + " " + urnProvider + "::p9"},
		},
		"the lookup has found nothing: only the pending operation goes": {
			checkpoint: checkpointOf(`{"manifest":{},"resources":[` + stackResource() + `],"pending_operations":` + pendingThis + `}`),
			lookup:     checkpointOf(latestOf(stackResource(), providerResource("p9"))), want: []string{urnStack}, wantPending: 1,
		},
		"there is no lookup's checkpoint: that is nothing found": {
			checkpoint: checkpointOf(`{"manifest":{},"resources":[` + stackResource() + `],"pending_operations":` + pendingThis + `}`),
			want:       []string{urnStack}, wantPending: 1,
		},
		"the object is known already: what was made with it stays": {
			checkpoint: checkpointOf(latestOf(stackResource(), providerResource("p1"), thisResource("p1", `,"inputs":{"size":"big"}`))), lookup: lookup,
			want: []string{urnStack, urnProvider + " p1", urnThis + " " + urnProvider + "::p1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := Adopt(tc.checkpoint, tc.lookup)
			if err != nil {
				t.Fatal(err)
			}
			read, err := readCheckpoint(raw)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range read.resources {
				if one.flag("external") {
					t.Errorf("%s is still external: a destroy would leave it alone", one.text("urn"))
				}
				text := one.text("urn")
				if one.provider() {
					text += " " + one.text("id")
				} else if one.text("provider") != "" {
					text += " " + one.text("provider")
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("resources differ (-want +got):\n%s", diff)
			}
			if len(read.pending) != tc.wantPending {
				t.Errorf("%d operations are pending, want %d", len(read.pending), tc.wantPending)
			}
		})
	}
}

func TestAdoptKeepsWhatItDoesNotKnow(t *testing.T) {
	raw, err := Adopt(checkpointOf(`{"manifest":{"time":"now"},"resources":[{"urn":"urn:a::b::c::d","novel":{"x":1}}],"metadata":{"y":2}}`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Features   []string `json:"features"`
		Checkpoint struct {
			Latest struct {
				Metadata  json.RawMessage              `json:"metadata"`
				Resources []map[string]json.RawMessage `json:"resources"`
			} `json:"latest"`
		} `json:"checkpoint"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Checkpoint.Latest.Metadata) != `{"y":2}` || string(got.Checkpoint.Latest.Resources[0]["novel"]) != `{"x":1}` || len(got.Features) != 1 {
		t.Errorf("checkpoint is %s, want every field of the old one in it", raw)
	}
}

func TestAdoptDropsOutputsOfTheLookup(t *testing.T) {
	raw, err := Adopt(emptyCheckpoint("acme"), lookup)
	if err != nil {
		t.Fatal(err)
	}
	read, err := readCheckpoint(raw)
	if err != nil {
		t.Fatal(err)
	}
	if outputs := read.find(urnStack)["outputs"]; outputs != nil {
		t.Errorf("the stack's outputs are %s, want none: they are those of the lookup's program", outputs)
	}
}

func TestFound(t *testing.T) {
	found, err := LookupResources(lookup)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]json.RawMessage{"acme:index:Server.this": json.RawMessage(`{"uid":"u1"}`)}, found); diff != "" {
		t.Errorf("objects differ (-want +got):\n%s", diff)
	}
}

func TestReadCheckpointRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"no JSON":                       `{`,
		"another version":               `{"version":4,"checkpoint":{}}`,
		"nothing in it":                 `{"version":3}`,
		"resources that are no list":    `{"version":3,"checkpoint":{"latest":{"resources":{}}}}`,
		"a latest that is not readable": `{"version":3,"checkpoint":{"latest":[]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readCheckpoint([]byte(raw)); err == nil {
				t.Error("it is read, want an error: what is written on top of it would lose what it was")
			}
		})
	}
}
