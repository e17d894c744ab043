package iac

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

func TestUpdatesOf(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation  *string
		standard    ModuleUpdates
		want        ModuleUpdates
		wantMisread bool
	}{
		"the operator's, without an annotation": {nil, ModuleUpdatesInPlace, ModuleUpdatesInPlace, false},
		"the Machine's wins":                    {new(string(ModuleUpdatesInPlace)), ModuleUpdatesHold, ModuleUpdatesInPlace, false},
		"also when it is the stricter one":      {new(string(ModuleUpdatesHold)), ModuleUpdatesInPlace, ModuleUpdatesHold, false},
		"what cannot be read allows nothing":    {new("inplace"), ModuleUpdatesInPlace, ModuleUpdatesHold, true},
		"nor does what is empty":                {new(""), ModuleUpdatesInPlace, ModuleUpdatesHold, true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &machinev1beta1.Machine{}
			if tc.annotation != nil {
				machine.Annotations = map[string]string{ModuleUpdatesAnnotation: *tc.annotation}
			}
			got, misread := updatesOf(machine, tc.standard)
			if got != tc.want || (misread != "") != tc.wantMisread {
				t.Errorf("got %q, %q; want %q", got, misread, tc.want)
			}
			if misread != "" && !strings.Contains(misread, "write Hold or InPlace") {
				t.Errorf("%q does not tell the mend", misread)
			}
		})
	}
}

func TestModuleUpdatesIsAFlag(t *testing.T) {
	var u ModuleUpdates
	if err := u.Set("InPlace"); err != nil || u.String() != "InPlace" {
		t.Errorf("set to %q, %v", u, err)
	}
	if err := u.Set("hold"); err == nil || !strings.Contains(err.Error(), "write Hold or InPlace") || u != ModuleUpdatesInPlace {
		t.Errorf("set to %q, %v; want an error that tells the mend, and no change", u, err)
	}
}

func TestChoose(t *testing.T) {
	own, next := &desired{fingerprint: fingerprint}, &desired{fingerprint: "another"}
	refusedNext := lifecycle.Record{ModuleRefusal: &lifecycle.Refusal{Fingerprint: "another", Message: "refused"}}
	for name, tc := range map[string]struct {
		prospects    prospects
		record       lifecycle.Record
		want         *desired
		wantWithheld string
	}{
		"its own, without another that it may get":          {prospects{own: own}, lifecycle.Record{}, own, ""},
		"the other, where it may get it":                    {prospects{own: own, next: next}, lifecycle.Record{}, next, ""},
		"its own first, while something is half done":       {prospects{own: own, next: next}, lifecycle.Record{Intent: lostCreate()}, own, ""},
		"its own, once the other has been refused":          {prospects{own: own, next: next}, refusedNext, own, "refused"},
		"the other, when something else was refused":        {prospects{own: own, next: next}, lifecycle.Record{ModuleRefusal: &lifecycle.Refusal{Fingerprint: fingerprint}}, next, ""},
		"its own, where the other does not take it":         {prospects{own: own, nextErr: actuators.InvalidConfiguration("cpu")}, lifecycle.Record{}, own, "does not take this providerSpec: cpu"},
		"the other, where its own does not take it":         {prospects{ownErr: errors.New("cpu"), next: next}, lifecycle.Record{}, next, ""},
		"the other, where its own is lost, also half done":  {prospects{next: next}, lifecycle.Record{Intent: lostCreate()}, next, ""},
		"nothing, where its own is lost and other refused":  {prospects{next: next}, refusedNext, nil, "refused"},
		"nothing, where its own does not take it":           {prospects{ownErr: errors.New("cpu")}, lifecycle.Record{}, nil, ""},
		"its own, where the other cannot be told right now": {prospects{own: own, nextErr: errors.New("no Secret")}, lifecycle.Record{}, own, "no Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			got, withheld := tc.prospects.choose(&lifecycle.Facts{Record: tc.record})
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if withheld == nil && tc.wantWithheld != "" || withheld != nil && (tc.wantWithheld == "" || !strings.Contains(withheld.Message, tc.wantWithheld)) {
				t.Errorf("withheld %v, want %q", withheld, tc.wantWithheld)
			}
		})
	}
}

func TestModuleCondition(t *testing.T) {
	older, newer := changedModule(t, "# older\n"), changedModule(t, "# newer\n")
	refused := actuators.UnsupportedChange("it would be replaced")
	for name, tc := range map[string]struct {
		choices    choices
		withheld   *actuators.MachineError
		wantStatus metav1.ConditionStatus
		wantReason string
		want       []string
	}{
		"none while there is nothing":         {choices{own: newer, current: newer}, nil, "", "", nil},
		"true with the current one":           {choices{bound: newer.Reference(), own: newer, current: newer}, nil, metav1.ConditionTrue, reasonCurrent, nil},
		"a misread annotation is told anyhow": {choices{bound: newer.Reference(), own: newer, current: newer, misread: "write it"}, nil, metav1.ConditionTrue, reasonCurrent, []string{"write it"}},
		"held, with how to allow it": {
			choices{bound: older.Reference(), own: older, current: newer, updates: ModuleUpdatesHold}, nil, metav1.ConditionFalse, reasonUpdateHeld,
			[]string{short(older.Reference()), short(newer.Reference()), ModuleUpdatesAnnotation + ": InPlace"},
		},
		"allowed, and not yet there": {
			choices{bound: older.Reference(), own: older, current: newer, updates: ModuleUpdatesInPlace}, nil, metav1.ConditionFalse, reasonUpdating,
			[]string{short(older.Reference()), short(newer.Reference())},
		},
		"allowed, and refused": {
			choices{bound: older.Reference(), own: older, current: newer, updates: ModuleUpdatesInPlace}, refused, metav1.ConditionFalse, reasonUpdateRefused,
			[]string{short(older.Reference()), "it would be replaced"},
		},
		"lost": {
			choices{bound: older.Reference(), current: newer, lost: errors.New("no Secret")}, nil, metav1.ConditionFalse, reasonContentLost,
			[]string{short(older.Reference()), short(newer.Reference()), "no Secret"},
		},
		"not served any more": {choices{bound: older.Reference(), own: older}, nil, metav1.ConditionFalse, reasonNotServed, []string{short(older.Reference())}},
	} {
		t.Run(name, func(t *testing.T) {
			got := moduleCondition(&tc.choices, tc.withheld)
			if got == nil {
				got = &metav1.Condition{}
			}
			if got.Status != tc.wantStatus || got.Reason != tc.wantReason {
				t.Errorf("got %s %s, want %s %s", got.Status, got.Reason, tc.wantStatus, tc.wantReason)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q lacks %q", got.Message, want)
				}
			}
			if strings.Contains(got.Message, older.Digest()) || strings.Contains(got.Message, newer.Digest()) {
				t.Errorf("message %q has a whole digest", got.Message)
			}
		})
	}
}

func TestWhatARunRecordsOfItsModule(t *testing.T) {
	loaded := changedModule(t, "# any\n")
	wanted := &desired{module: loaded, fingerprint: fingerprint}
	type recorded struct {
		Renews, Records bool
		Module          string
		Refusal         string
		Renewal         string
	}
	for name, tc := range map[string]struct {
		record    lifecycle.Record
		operation runs.Operation
		outcome   error
		want      recorded
	}{
		"a create records it with its intent":          {lifecycle.Record{}, runs.Create, errors.New("no"), recorded{Records: true}},
		"an update of the same content does not":       {lifecycle.Record{Module: loaded.Reference()}, runs.Update, nil, recorded{Module: loaded.Reference(), Refusal: "-"}},
		"nor does a refused one":                       {lifecycle.Record{Module: loaded.Reference()}, runs.Update, actuators.UnsupportedChange("no"), recorded{Refusal: fingerprint}},
		"an update to another records it once reached": {lifecycle.Record{Module: "m@sha256:1"}, runs.Update, nil, recorded{Renews: true, Module: loaded.Reference(), Refusal: "-", Renewal: "-"}},
		"a refused one keeps what is recorded":         {lifecycle.Record{Module: "m@sha256:1"}, runs.Update, actuators.UnsupportedChange("no"), recorded{Renews: true, Renewal: fingerprint}},
		"an update where none is recorded records it":  {lifecycle.Record{}, runs.Update, errors.New("no"), recorded{Records: true}},
		"a destroy records nothing":                    {lifecycle.Record{Module: "m@sha256:1"}, runs.Destroy, errors.New("no"), recorded{}},
	} {
		t.Run(name, func(t *testing.T) {
			run := decided(&Actuator{clock: testClock()}, &machinev1beta1.Machine{}, wanted, &lifecycle.Facts{Record: tc.record}, lifecycle.Decision{Operation: tc.operation})
			meta := run.outcome(tc.outcome).MetaPatch
			text := func(key string) string {
				value, set := meta[key]
				switch {
				case !set:
					return ""
				case value == nil:
					return "-"
				case strings.HasPrefix(*value, "{"):
					var read lifecycle.Refusal
					if err := json.Unmarshal([]byte(*value), &read); err != nil {
						t.Fatal(err)
					}
					return read.Fingerprint
				}
				return *value
			}
			got := recorded{run.renews, run.records, text("module"), text("refusal"), text("module-refusal")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShort(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	if got, want := short("kubemark@sha256:"+digest), "kubemark@sha256:0123456789ab"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := short("odd"); got != "odd" {
		t.Errorf("got %q, want what is no reference as it is", got)
	}
}
