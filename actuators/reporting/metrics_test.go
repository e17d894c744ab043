package reporting

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

func TestFailuresAreCountedUntilTheMachineIsGone(t *testing.T) {
	one, two := builder.In("ns", builder.Machine()), builder.In("ns", builder.Machine())
	one.Name, two.Name = "one", "two"
	metrics := NewMetrics()
	metrics.failed(runs.Create, one, "Quota")
	metrics.failed(runs.Create, one, "Quota")
	metrics.failed(runs.Update, one, "UpdateError")
	metrics.failed(runs.Drift, one, "UpdateError")
	metrics.failed(runs.Destroy, one, "Credentials")
	metrics.failed(runs.Create, two, "Throttled")
	want := map[string]float64{
		"mapi_instance_create_failed{name=one,namespace=ns,reason=Quota}":       2,
		"mapi_instance_update_failed{name=one,namespace=ns,reason=UpdateError}": 2,
		"mapi_instance_delete_failed{name=one,namespace=ns,reason=Credentials}": 1,
		"mapi_instance_create_failed{name=two,namespace=ns,reason=Throttled}":   1,
	}
	if diff := cmp.Diff(want, observe.Counters(t, metrics.Collectors()...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	metrics.Forget(one)
	want = map[string]float64{"mapi_instance_create_failed{name=two,namespace=ns,reason=Throttled}": 1}
	if diff := cmp.Diff(want, observe.Counters(t, metrics.Collectors()...)); diff != "" {
		t.Errorf("after one is gone (-want +got):\n%s", diff)
	}
}

func TestDriftChecksAreCountedByResult(t *testing.T) {
	metrics := NewMetrics()
	for _, found := range []*record.DriftCheck{{Result: record.DriftNone}, {Result: record.DriftNone}, {Result: record.DriftChanged}, {Result: record.DriftMissing}, nil} {
		metrics.Checked("terraform", found)
	}
	want := map[string]float64{
		"machine_iac_drift_checks_total{engine=terraform,result=unchanged}": 2,
		"machine_iac_drift_checks_total{engine=terraform,result=changed}":   1,
		"machine_iac_drift_checks_total{engine=terraform,result=missing}":   1,
		"machine_iac_drift_checks_total{engine=terraform,result=failed}":    1,
	}
	if diff := cmp.Diff(want, observe.Counters(t, metrics.Collectors()...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReasonsAreWordsAndNoTexts(t *testing.T) {
	for name, tc := range map[string]struct {
		operation runs.Operation
		err       error
		want      string
	}{
		"the engine's class is the best word":            {runs.Create, &failure.Error{Class: failure.Quota}, "Quota"},
		"so it is under other errors":                    {runs.Create, fmt.Errorf("running: %w", &failure.Error{Class: failure.Throttled}), "Throttled"},
		"a class that says nothing gives way":            {runs.Destroy, &failure.Error{Class: failure.Unknown}, "DeleteError"},
		"a lock has a word of its own":                   {runs.Update, &state.LockedError{}, "Locked"},
		"an error of the Machine API keeps its reason":   {runs.Update, actuators.UnsupportedChange("no"), "UnsupportedChange"},
		"anything else is the operation's":               {runs.Create, errors.New("a long story about 42 things"), "CreateError"},
		"a drift check fails as an update, as it is one": {runs.Drift, errors.New("odd"), "UpdateError"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(tc.operation, tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
