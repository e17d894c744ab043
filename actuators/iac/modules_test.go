package iac

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

func TestWhatARunRecordsOfItsModule(t *testing.T) {
	loaded := changedModule(t, "# any\n")
	wanted := &desired.State{Module: loaded, Fingerprint: fingerprint}
	type recorded struct {
		Renews, Records bool
		Module          string
		Refusal         string
		Renewal         string
	}
	for name, tc := range map[string]struct {
		record    record.Record
		operation runs.Operation
		outcome   error
		want      recorded
	}{
		"a create records it with its intent":          {record.Record{}, runs.Create, errors.New("no"), recorded{Records: true}},
		"an update of the same content does not":       {record.Record{Module: loaded.Reference()}, runs.Update, nil, recorded{Module: loaded.Reference(), Refusal: "-"}},
		"nor does a refused one":                       {record.Record{Module: loaded.Reference()}, runs.Update, actuators.UnsupportedChange("no"), recorded{Refusal: fingerprint}},
		"an update to another records it once reached": {record.Record{Module: "m@sha256:1"}, runs.Update, nil, recorded{Renews: true, Module: loaded.Reference(), Refusal: "-", Renewal: "-"}},
		"a refused one keeps what is recorded":         {record.Record{Module: "m@sha256:1"}, runs.Update, actuators.UnsupportedChange("no"), recorded{Renews: true, Renewal: fingerprint}},
		"an update where none is recorded records it":  {record.Record{}, runs.Update, errors.New("no"), recorded{Records: true}},
		"a destroy records nothing":                    {record.Record{Module: "m@sha256:1"}, runs.Destroy, errors.New("no"), recorded{}},
	} {
		t.Run(name, func(t *testing.T) {
			run := decided(&Actuator{clock: testClock()}, &machinev1beta1.Machine{}, wanted, &lifecycle.Facts{Record: tc.record}, lifecycle.Decision{Operation: tc.operation})
			meta := run.patchFor(tc.outcome).MetaPatch
			text := func(key string) string {
				value, set := meta[key]
				switch {
				case !set:
					return ""
				case value == nil:
					return "-"
				case strings.HasPrefix(*value, "{"):
					var read record.Refusal
					if err := json.Unmarshal([]byte(*value), &read); err != nil {
						t.Fatal(err)
					}
					return read.Fingerprint
				}
				return *value
			}
			got := recorded{run.changesModule, run.recordsModule, text("module"), text("refusal"), text("module-refusal")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
