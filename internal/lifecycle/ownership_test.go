package lifecycle

import (
	"encoding/json"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

func TestAWitnessIsRenewedFromTheState(t *testing.T) {
	unsigned := &record.Witness{Run: "create", Unsigned: true}
	claims := map[string]string{record.WitnessAnnotation: `{"uid":"own","adopted":true,"providerID":"x://forged"}`}
	with := func(change func(*Facts)) *Facts {
		f := &Facts{Stored: true, State: stateWith(1, 0), Witness: unsigned, Record: record.Record{IdentityUID: "old"}}
		f.State.Outputs = map[string]statefile.Output{"provider_id": {Value: json.RawMessage(`"x://1"`)}}
		change(f)
		return f
	}
	for name, tc := range map[string]struct {
		facts       *Facts
		annotations map[string]string
		want        *record.Witness
	}{
		"from an earlier version":              {with(func(*Facts) {}), nil, &record.Witness{Run: "create", IdentityUID: "old"}},
		"none":                                 {with(func(f *Facts) { f.Witness = nil }), nil, &record.Witness{Run: "renewed", IdentityUID: "old"}},
		"of an adopted instance":               {with(func(*Facts) {}), claims, &record.Witness{Run: "create", IdentityUID: "old", Adopted: true, ProviderID: "x://1"}},
		"signed":                               {with(func(f *Facts) { f.Witness = seen() }), nil, nil},
		"the state has no instance":            {with(func(f *Facts) { f.State = stateWith(0, 0) }), claims, nil},
		"a run is in progress":                 {with(func(f *Facts) { f.Run = run(runs.Destroy, runs.Running) }), nil, nil},
		"the instance is about to be released": {with(func(f *Facts) { f.Adoption.Adoption, f.Witness = AdoptionRelease, nil }), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &machinev1beta1.Machine{}
			machine.UID, machine.Annotations = "own", tc.annotations
			got := tc.facts.RenewedWitness(machine, noon)
			if (got == nil) != (tc.want == nil) {
				t.Fatalf("got %+v, want %+v", got, tc.want)
			}
			if got != nil && (got.Run != tc.want.Run || got.IdentityUID != tc.want.IdentityUID || got.Adopted != tc.want.Adopted || got.ProviderID != tc.want.ProviderID) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAStateShowsThatItIsOfAnother(t *testing.T) {
	identities, _ := module.NewIdentities([]v1alpha1.ResourceIdentity{{Type: "thing", MachineUID: v1alpha1.IdentityField{Path: []string{"uid"}}}})
	raw := func(uid string) []byte {
		return []byte(`{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"managed","type":"thing","name":"this","instances":[{"attributes":{"uid":"` + uid + `"}}]}]}`)
	}
	adopted := func(providerID string) *record.Witness { return &record.Witness{Adopted: true, ProviderID: providerID} }
	state := stateWith(1, 0)
	state.Outputs = map[string]statefile.Output{"provider_id": {Value: json.RawMessage(`"x://1"`)}}
	for name, tc := range map[string]struct {
		facts   Facts
		another bool
	}{
		"its own":                          {Facts{State: state, Raw: raw("own")}, false},
		"no UID, as of an imported one":    {Facts{State: state, Raw: raw("")}, false},
		"another Machine's":                {Facts{State: state, Raw: raw("other")}, true},
		"the UID that it was created with": {Facts{State: state, Raw: raw("old"), Record: record.Record{IdentityUID: "old"}}, false},
		"adopted, with another UID":        {Facts{State: state, Raw: raw("other"), Witness: adopted("x://1")}, false},
		"another than was adopted":         {Facts{State: state, Raw: raw("other"), Witness: adopted("x://2")}, true},
		"nothing":                          {Facts{State: stateWith(0, 0)}, false},
	} {
		if why, err := tc.facts.OfAnother(identities, "own"); err != nil || (why != "") != tc.another {
			t.Errorf("%s: got %q, %v", name, why, err)
		}
	}
}
