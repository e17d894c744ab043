package live

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// edits are changes of a providerSpec, and their expected effects on a Machine.
type edits map[string]struct {
	fields map[string]any
	want   preview.EditResult
	// wantForces are the fields that force a replacement.
	wantForces []string
}

// agree compares the planned effect of each edit of a Machine with what the actuator does, and takes the edit back.
func agree(t *testing.T, b *bench, spec map[string]any, cases edits) {
	t.Helper()
	set := b.set(1, spec)
	machine := b.machine(set, "a")
	b.bring(machine)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			wanted := with(spec, tc.fields)
			for _, refresh := range []bool{false, true} {
				planned := b.plan(edited(set, wanted), func(o *Options) { o.Refresh = refresh })
				live := planned.Sets[0].Live
				if !live.Exists || live.Create != 0 || live.Delete != 0 || len(live.Machines) != 1 {
					t.Fatalf("the cluster has %+v; want the one Machine, and none created or deleted", live)
				}
				found := live.Machines[0]
				if found.Result != tc.want || found.Drift != "" {
					t.Errorf("refresh %t: the result is %s (%s), with the drift %q and %+v; want %s", refresh,
						found.Result, found.Why, found.Drift, found.Resources, tc.want)
				}
				var forces []string
				for _, field := range found.Fields {
					if field.Forces {
						forces = append(forces, field.Path)
					}
				}
				if diff := cmp.Diff(tc.wantForces, forces); diff != "" {
					t.Errorf("refresh %t: what forces a new Machine (-want +got):\n%s", refresh, diff)
				}
				if changes := tc.want != preview.Unchanged; planned.Summary.Changes() != changes {
					t.Errorf("it has changes: %t", planned.Summary.Changes())
				}
				var out strings.Builder
				if err := preview.Print(&out, planned, "", false); err != nil ||
					strings.Contains(out.String(), "t0p-secret") {
					t.Errorf("it shows a secret, or %v:\n%s", err, out.String())
				}
			}
			machine.Spec.ProviderSpec.Value = builder.ProviderSpec(wanted)
			before := b.stateOf(machine)
			err := b.drive(b.actuator.Update, machine)
			switch after := b.stateOf(machine); {
			case tc.want == preview.Unchanged && (err != nil || before != after):
				t.Errorf("nothing was to change, but the update ends with %v, and the state is\n%s\nafter\n%s", err,
					after, before)
			case tc.want == preview.InPlace && (err != nil || before == after):
				t.Errorf("a change in place was planned, but the update ends with %v; the state has changed: %t", err,
					before != after)
			case tc.want == preview.NewMachine && !refuses(err):
				t.Errorf("a new Machine was planned, but the update ends with %v", err)
			case tc.want == preview.Refused && !actuators.IsInvalidConfiguration(err):
				t.Errorf("a refusal was planned, but the update ends with %v", err)
			}
			machine.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
			if err := b.drive(b.actuator.Update, machine); err != nil {
				t.Fatalf("taking the edit back: %v", err)
			}
			b.rest(machine)
		})
	}
}

func TestALivePlanAgreesWithTheUpdate(t *testing.T) {
	long.Test(t)
	t.Run("kubemark", func(t *testing.T) {
		b, spec := newKubemark(t)
		agree(t, b, spec, edits{
			"nothing": {want: preview.Unchanged},
			"what a Node takes": {fields: map[string]any{"zone": "zone-b",
				"labels": map[string]any{"team": "a"}}, want: preview.InPlace},
			"what a Node has for good": {fields: map[string]any{"cpu": 8}, want: preview.NewMachine,
				wantForces: []string{"cpu"}},
			"some of both, of which one forces it": {fields: map[string]any{"cpu": 8, "zone": "zone-b"},
				want: preview.NewMachine, wantForces: []string{"cpu"}},
			"two that force it": {fields: map[string]any{"memory": "16Gi", "cpu": 8,
				"zone": "zone-b"}, want: preview.NewMachine, wantForces: []string{"cpu", "memory"}},
		})
	})
	t.Run("vsphere", func(t *testing.T) {
		b, spec, _ := newVSphere(t)
		agree(t, b, spec, edits{
			"nothing": {want: preview.Unchanged},
			"a template, which nobody has looked up yet": {
				fields: map[string]any{"template": "DC0_C0_RP0_VM1"}, want: preview.NewMachine,
				wantForces: []string{"template"},
			},
			"memory, which needs a reboot": {fields: map[string]any{"memoryMiB": 4096}, want: preview.NewMachine,
				wantForces: []string{"memoryMiB"}},
		})
	})
	t.Run("openstack", func(t *testing.T) {
		b, spec := newOpenStack(t)
		agree(t, b, spec, edits{
			"nothing": {want: preview.Unchanged},
			"a config drive": {fields: map[string]any{"configDrive": true}, want: preview.NewMachine,
				wantForces: []string{"configDrive"}},
		})
	})
}

// stateOf returns the Machine's stored state.
func (b *bench) stateOf(machine *machinev1beta1.Machine) string {
	b.t.Helper()
	snapshot, err := b.store().Get(b.t.Context(), keyOf(machine))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(snapshot.Raw)
}
