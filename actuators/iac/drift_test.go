package iac

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/stacks"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

func TestWhatARepairRecords(t *testing.T) {
	at := testClock().Now().UTC()
	earlier := &record.Repair{At: at.Add(-time.Hour), Count: 2}
	for name, tc := range map[string]struct {
		decision lifecycle.Decision
		repaired *record.Repair
		found    *record.DriftCheck
		outcome  error
		want     *record.Repair
		forgets  bool
	}{
		"a first repair":                             {lifecycle.Decision{Operation: runs.Update, Repair: true}, nil, nil, nil, &record.Repair{At: at, Count: 1}, false},
		"one more":                                   {lifecycle.Decision{Operation: runs.Update, Repair: true}, earlier, nil, nil, &record.Repair{At: at, Count: 3}, false},
		"one that is refused":                        {lifecycle.Decision{Operation: runs.Update, Repair: true}, nil, nil, actuators.UnsupportedChange("no"), &record.Repair{At: at, Count: 1, Refused: "no"}, false},
		"one that failed counts for nothing":         {lifecycle.Decision{Operation: runs.Update, Repair: true}, earlier, nil, errors.New("no"), nil, false},
		"an update is none":                          {lifecycle.Decision{Operation: runs.Update}, earlier, nil, nil, nil, false},
		"a check that finds nothing forgets repairs": {lifecycle.Decision{Operation: runs.Drift}, earlier, &record.DriftCheck{At: at, Result: record.DriftNone}, nil, nil, true},
		"one that finds drift does not":              {lifecycle.Decision{Operation: runs.Drift}, earlier, &record.DriftCheck{At: at, Result: record.DriftChanged}, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &lifecycle.Facts{Record: record.Record{Repair: tc.repaired, Module: changedModule(t, "").Reference()}}
			run := decided(&Actuator{clock: testClock()}, builder.Machine(), &desired.State{Module: changedModule(t, "")}, f, tc.decision)
			run.found = tc.found
			patch := run.patchFor(tc.outcome)
			if check, is := run.operation().(driftCheck); is {
				patch = check.patch(tc.outcome)
			}
			value, set := patch.MetaPatch["drift-repair"]
			if forgets := set && value == nil; forgets != tc.forgets {
				t.Errorf("repairs are forgotten: %t, want %t", forgets, tc.forgets)
			}
			var got *record.Repair
			if value != nil {
				got = &record.Repair{}
				if err := json.Unmarshal([]byte(*value), got); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if _, refused := patch.MetaPatch["refusal"]; tc.decision.Repair && refused && tc.outcome != nil {
				t.Error("a repair that is refused is recorded as a change that is")
			}
		})
	}
}

func TestDriftIsRepairedInPlaceAndNotWithoutEnd(t *testing.T) {
	eachEngine(t, driftIsRepairedInPlaceAndNotWithoutEnd)
}

func driftIsRepairedInPlaceAndNotWithoutEnd(t *testing.T, b *bench) {
	b.upgrade(b.seeing(), "owner-1")
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	meddle := func() {
		t.Helper()
		node := b.node(machine)
		node.Labels[corev1.LabelTopologyZone] = "elsewhere"
		if err := b.client.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	zone := func() string { return b.node(machine).Labels[corev1.LabelTopologyZone] }
	meddle()
	if found := b.checked(machine); found.Result != record.DriftChanged {
		t.Fatalf("the check found %+v, want it changed", found)
	}
	if err := b.drive(b.Update, machine); err != nil || zone() != "elsewhere" {
		t.Fatalf("Update: %v; zone %s, want what is only reported left alone", err, zone())
	}

	b.repairs(machine)
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if after := b.node(machine); after.UID != before.UID || zone() != "zone-a" {
		t.Errorf("zone %s, want the same Node back in zone-a", zone())
	}
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if condition := conditionOf(machine, reporting.Drifted); condition.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v, want no drift", condition)
	}
	if events := strings.Join(b.events(), "\n"); strings.Count(events, "DriftRepaired") != 1 {
		t.Errorf("events %q, want one DriftRepaired", events)
	}
	if got := observe.Counters(t, b.metrics.Collectors()...)["machine_iac_drift_repairs_total{engine="+reporting.EngineLabel(b.uses)+",result=repaired}"]; got != 1 {
		t.Errorf("counted %v repairs, want one", got)
	}

	meddle()
	b.clock.SetTime(b.clock.Now().Add(-50 * time.Minute)) // the check below is at 70 minutes, and the pause is 2 hours
	if found := b.checked(machine); found.Result != record.DriftChanged {
		t.Fatalf("the check found %+v, want it changed again", found)
	}
	if err := b.drive(b.Update, machine); err != nil || zone() != "elsewhere" {
		t.Errorf("Update: %v; zone %s, want it left alone for a while", err, zone())
	}
	if condition := conditionOf(machine, reporting.Drifted); condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, "next repair after") {
		t.Errorf("condition %+v, want it to say when it is repaired next", condition)
	}
	b.clock.SetTime(b.clock.Now().Add(51 * time.Minute))
	if err := b.drive(b.Update, machine); err != nil || zone() != "zone-a" {
		kept := b.record(machine)
		t.Errorf("Update: %v; zone %s, want it repaired after the pause; check %+v, repair %+v, condition %+v, events %q",
			err, zone(), kept.Check, kept.Repair, conditionOf(machine, reporting.Drifted), b.events())
	}
}

// seeing returns the kubemark module of the bench's engine, changed so that it sees labels that
// others have changed.
func (b *bench) seeing() *module.Module {
	b.t.Helper()
	if b.uses == v1alpha1.EnginePulumi {
		return changed(b.t, stacks.FS, "", `[metadata.annotations, metadata.labels, spec.taints]`, `[metadata.annotations]`)
	}
	return changedModule(b.t, "", `["metadata.annotations", "metadata.labels", "spec.taints"]`, `["metadata.annotations"]`)
}

// repairs has drift of a Machine repaired.
func (b *bench) repairs(machine *machinev1beta1.Machine) {
	if b.uses == v1alpha1.EnginePulumi {
		b.t.Helper()
		spec := map[string]any{}
		if err := json.Unmarshal(machine.Spec.ProviderSpec.Value.Raw, &spec); err != nil {
			b.t.Fatal(err)
		}
		spec["driftPolicy"] = v1alpha1.DriftRepair
		machine.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
		return
	}
	machine.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: string(v1alpha1.DriftRepair)}
}

func TestDriftThatIsIgnoredIsNotLookedFor(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	machine.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: string(v1alpha1.DriftIgnore)}
	b.bring(machine)
	starts := b.starts()
	b.clock.SetTime(b.clock.Now().Add(48 * time.Hour))
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if _, busy := b.pool.Status(runs.Key(machine.UID)); busy || b.starts() != starts {
		t.Error("a run was made")
	}
	if again := b.RecheckAfter(machine); again != 0 {
		t.Errorf("it is looked at again after %s, want never", again)
	}
	if condition := conditionOf(machine, reporting.Drifted); condition.Reason != "Ignored" {
		t.Errorf("condition %+v, want it to say that drift is ignored", condition)
	}
}

func TestOnlyDriftThatIsNotIgnoredIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		policy v1alpha1.DriftPolicy
		found  record.DriftResult
		want   int
	}{
		"drift that is reported":                            {v1alpha1.DriftReport, record.DriftChanged, 1},
		"drift that will be repaired":                       {v1alpha1.DriftRepair, record.DriftChanged, 1},
		"not drift that is ignored":                         {v1alpha1.DriftIgnore, record.DriftChanged, 0},
		"an instance that is gone, when it is found anyhow": {v1alpha1.DriftIgnore, record.DriftMissing, 1},
		"not that all is well":                              {v1alpha1.DriftReport, record.DriftNone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(5)
			machine := builder.Machine(func(m *machinev1beta1.Machine) {
				m.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: string(tc.policy)}
			})
			machine.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"apiVersion": "example.io/v1", "kind": "Example"})
			run := &task{found: &record.DriftCheck{Result: tc.found}, run: run{actuator: &Actuator{recorder: recorder, metrics: reporting.NewMetrics()}, machine: machine, wanted: &desired.State{Module: changedModule(t, "")}}}
			run.reportDrift(nil)
			if got := len(recorder.Events); got != tc.want {
				t.Errorf("%d events, want %d", got, tc.want)
			}
		})
	}
}

func TestADriftCheckIsMadeOnRequest(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	node := b.node(machine)
	node.Labels[corev1.LabelArchStable] = "arm64"
	if err := b.client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, record.CheckDriftAnnotation, "2026-03-01T12:00:00Z")
	for deadline := time.Now().Add(patience); readProviderStatus(machine).LastDriftCheckRequest == ""; time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatal("no check was made")
		}
		_ = b.Update(t.Context(), machine)
	}
	if got := readProviderStatus(machine).LastDriftCheckRequest; got != "2026-03-01T12:00:00Z" {
		t.Errorf("the status has the request %q", got)
	}
	starts := b.starts()
	for range 3 {
		if err := b.drive(b.Update, machine); err != nil {
			t.Fatal(err)
		}
	}
	if again := b.starts(); again != starts {
		t.Errorf("one request had the drift checked again: %d more starts", again-starts)
	}
}
