package reporting

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestTyped(t *testing.T) {
	for name, tc := range map[string]struct {
		operation  runs.Operation
		err        error
		wantReason machinev1beta1.MachineStatusError
		wantText   string
	}{
		"a bad configuration ends a create":         {runs.Create, &failure.Error{Class: failure.InvalidConfiguration}, machinev1beta1.InvalidConfigurationMachineError, ""},
		"a bad configuration does not end destroy":  {runs.Destroy, &failure.Error{Class: failure.InvalidConfiguration}, machinev1beta1.DeleteMachineError, ""},
		"quota is shown as what it is":              {runs.Create, &failure.Error{Class: failure.Quota}, machinev1beta1.InsufficientResourcesMachineError, "free or raise the quota"},
		"throttling lacks resources, as quota does": {runs.Create, &failure.Error{Class: failure.Throttled}, machinev1beta1.InsufficientResourcesMachineError, "retrying later"},
		"throttling of a destroy is shown the same": {runs.Destroy, &failure.Error{Class: failure.Throttled}, machinev1beta1.InsufficientResourcesMachineError, "retrying later"},
		"credentials are retried and say the fix":   {runs.Create, &failure.Error{Class: failure.Credentials}, machinev1beta1.CreateMachineError, "check the credentials Secret"},
		"a missing permission is not bad credentials": {
			runs.Create, &failure.Error{Class: failure.Credentials, Diagnostics: []failure.Diagnostic{{
				Summary: `nodes is forbidden: User "u" cannot create resource "nodes"`}}},
			machinev1beta1.CreateMachineError, "lack the permission that the message names; grant it",
		},
		"a failed lookup says what it is for, and how to go on without it": {
			runs.Destroy, LookupFailed(builder.In("n", builder.Machine(func(m *machinev1beta1.Machine) { m.Name = "m" })), "r", &failure.Error{Class: failure.Credentials, Op: failure.OpPlan}),
			machinev1beta1.DeleteMachineError,
			"looking up an instance that run r may have created: planning; check the credentials Secret that the providerSpec names; " +
				"or make sure that the instance does not exist and run 'kubectl annotate --overwrite machine m -n n machine-iac.io/confirm-no-instance=r'",
		},
		"a refusal stays one":              {runs.Update, actuators.UnsupportedChange("no"), machinev1beta1.UnsupportedChangeMachineError, "no"},
		"anything else is the operation's": {runs.Update, errors.New("odd"), machinev1beta1.UpdateMachineError, "odd"},
		"a text that is withheld is elsewhere": {
			runs.Create, &failure.Error{Class: failure.Unknown, Diagnostics: []failure.Diagnostic{{Summary: "map[a:b]", Withheld: true}}}, machinev1beta1.CreateMachineError, "logs --withheld",
		},
		"a quota of the namespace is one": {
			runs.Create, fmt.Errorf("keeping module m: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s",
				errors.New("exceeded quota: objects, requested: count/secrets=1, used: count/secrets=5, limited: count/secrets=5"))),
			machinev1beta1.InsufficientResourcesMachineError, "limited: count/secrets=5; retried twice a minute; raise the ResourceQuota",
		},
		"the name of a quota in another refusal is none": {
			runs.Create, errors.New("exceeded quota: x"), machinev1beta1.CreateMachineError, "exceeded quota: x",
		},
		"an immutable state says what to do": {
			runs.Destroy, apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", field.ErrorList{
				field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")}),
			machinev1beta1.DeleteMachineError, "put a copy without the field immutable in its place, after a backup",
		},
		"a full work folder is the manager's": {
			runs.Create, &failure.Error{Op: failure.OpInit, Class: failure.Transient, Diagnostics: []failure.Diagnostic{{
				Summary: "Failed to install provider", Detail: "write aws_v6: copy_file_range: no space left on device"}}},
			machinev1beta1.CreateMachineError, "the work folder is full: initializing the module: Failed to install provider: " +
				"write aws_v6: copy_file_range: no space left on device; retrying; free space below the manager's --work-dir, or enlarge its volume",
		},
		"so is one that the manager cannot write to": {
			runs.Destroy, fmt.Errorf("writing the inputs: %w", &os.PathError{Op: "open", Path: "x.json", Err: syscall.ENOSPC}),
			machinev1beta1.DeleteMachineError, "the work folder is full: writing the inputs: open x.json: no space left on device; retrying; free",
		},
		"a full disk of the infrastructure is not": {
			runs.Create, &failure.Error{Op: failure.OpApply, Class: failure.Quota, Diagnostics: []failure.Diagnostic{{
				Summary: "cannot extend file '/images/vm.qcow2': No space left on device"}}},
			machinev1beta1.InsufficientResourcesMachineError, "applying: cannot extend file '/images/vm.qcow2': No space left on device; retrying; free or raise the quota",
		},
		"a lock names its holder": {
			runs.Create, &state.LockedError{Lock: state.Lock{Owner: "somebody", Run: "r"}}, machinev1beta1.CreateMachineError, "somebody",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Typed(tc.operation, tc.err)
			if got.Reason != tc.wantReason || !strings.Contains(got.Message, tc.wantText) {
				t.Errorf("got %s %q, want %s with %q", got.Reason, got.Message, tc.wantReason, tc.wantText)
			}
		})
	}
}

// stateOf returns a state with an instance, or a part of one.
func stateOf(tainted int) *statefile.State {
	return &statefile.State{Resources: []statefile.Resource{{Mode: statefile.ModeManaged, Type: "thing", Name: "this", Instances: 1, Tainted: tainted}}}
}

func TestUndeletable(t *testing.T) {
	bad := actuators.InvalidConfiguration("spec.providerSpec.value.cpu: a number is required")
	for name, tc := range map[string]struct {
		facts      *lifecycle.Facts
		err        error
		wantReason machinev1beta1.MachineStatusError
	}{
		"an instance that Exists vouches for is held by its configuration": {&lifecycle.Facts{Stored: true, State: stateOf(0)}, bad, machinev1beta1.InvalidConfigurationMachineError},
		// A caller may take an InvalidConfiguration for leave to forget the Machine when Exists
		// returns false.
		"half an instance is no reason to let the Machine go":      {&lifecycle.Facts{Stored: true, State: stateOf(1)}, bad, machinev1beta1.DeleteMachineError},
		"nor is an instance that may have been made":               {&lifecycle.Facts{Stored: true, Record: record.Record{Intent: &record.Intent{Operation: runs.Create, Run: "dead"}}}, bad, machinev1beta1.DeleteMachineError},
		"nor is one whose state is gone":                           {&lifecycle.Facts{Provisioned: true}, bad, machinev1beta1.DeleteMachineError},
		"nor is one that is missing, as a disk of it may be there": {&lifecycle.Facts{Stored: true, State: stateOf(0), Record: record.Record{Check: &record.DriftCheck{Result: record.DriftMissing}}}, bad, machinev1beta1.DeleteMachineError},
		"what a Secret can fix stays what it is":                   {&lifecycle.Facts{Provisioned: true}, actuators.DeleteFailed("spec.providerSpec.value.cpu: no Secret"), machinev1beta1.DeleteMachineError},
	} {
		t.Run(name, func(t *testing.T) {
			got := Typed(runs.Destroy, Undeletable(tc.facts, tc.err))
			if got.Reason != tc.wantReason || !strings.Contains(got.Message, "spec.providerSpec.value.cpu") {
				t.Errorf("got %s %q, want %s with the field", got.Reason, got.Message, tc.wantReason)
			}
		})
	}
}

func TestMachinesThatWaitAreReconciledLessOftenTheMoreThereAre(t *testing.T) {
	for waiting, want := range map[int]time.Duration{0: time.Minute, 600: time.Minute, 5000: 500 * time.Second} {
		if got := ProgressAfter(waiting); got != want {
			t.Errorf("with %d that wait, after %s; want %s", waiting, got, want)
		}
	}
}
