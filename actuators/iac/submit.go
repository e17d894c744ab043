package iac

import (
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// submit submits a run. It returns that the run is in progress, or why the last one failed.
func (a *Actuator) submit(o *observation, d lifecycle.Decision) error {
	wanted := o.choice.State
	t := newTask(a, o.machine, d.Operation)
	t.beside = d.Beside
	request := t.request(wanted)
	request.Task, request.Batch, request.Between = t, a.batchKey(wanted, o.facts, d), d.Between
	request.Fingerprint += o.facts.Confirmed // a confirmation by a person ends the backoff
	status, err := a.pool.Submit(request)
	if err != nil {
		return actuators.InProgress(reporting.ProgressInterval, "%s", err.Error())
	}
	switch {
	case d.Operation == runs.Drift:
		return nil
	case status.Phase == runs.Failed:
		o.status.Run = nil
		return a.retryLater(&status)
	}
	a.warn(o.machine, wanted, d.Operation)
	return o.inProgress(status)
}

// warn sends events when a run begins, about a missing pinned module or a doubtful providerSpec.
func (a *Actuator) warn(machine *machinev1beta1.Machine, wanted *desired.State, operation runs.Operation) {
	if wanted != nil && wanted.ModuleMissing != "" {
		reporting.ModuleMissing(machine, wanted.ModuleMissing).Send(a.recorder)
	}
	if wanted == nil || operation != runs.Create && operation != runs.Update {
		return
	}
	for _, warning := range wanted.Inputs.Warnings {
		event := reporting.IgnoredField
		if warning.Advice {
			event = reporting.DoubtfulField
		}
		event(machine, warning.String()).Send(a.recorder)
	}
}

// operations maps operations to their names in the provider status.
var operations = map[runs.Operation]v1alpha1.RunOperation{
	runs.Create: v1alpha1.RunCreate, runs.Update: v1alpha1.RunUpdate, runs.Drift: v1alpha1.RunDriftCheck,
	runs.Destroy: v1alpha1.RunDestroy,
}

// inProgress records the run in the provider status and returns the in-progress error.
func (o *observation) inProgress(run runs.Status) error {
	o.status.Run = &v1alpha1.RunStatus{Operation: operations[run.Operation], QueuedAt: seconds(run.QueuedAt)}
	if run.Phase == runs.Running {
		o.status.Run.StartedAt = seconds(run.StartedAt)
	}
	said := fmt.Sprintf("%s run in progress", run.Operation)
	waits := run.Waits
	if !run.ThrottledSince.IsZero() {
		waits = reporting.ThrottledSince(run.ThrottledSince)
	}
	if waits != "" {
		o.status.Run.WaitsFor = waits
		said = fmt.Sprintf("%s run waiting: %s", run.Operation, waits)
	}
	if run.Err != nil {
		said += fmt.Sprintf(", after %d failures: %s", run.Failures, run.Err)
	}
	return actuators.InProgress(reporting.ProgressAfter(run.Waiting), "%s", said)
}

// seconds truncates a time as the API does, so that a status does not change by a fraction of a
// second.
func seconds(at time.Time) *metav1.Time {
	stored := metav1.NewTime(at.Truncate(time.Second))
	return &stored
}

// retryLater returns the error of a failed run with the time until its retry.
func (a *Actuator) retryLater(run *runs.Status) error {
	after := max(minRequeue, run.RetryAt.Sub(a.clock.Now()))
	err := reporting.AsMachineError(run.Operation, run.Err)
	if failed, ok := errors.AsType[*actuators.MachineError](err); ok {
		return failed.In(after)
	}
	if waiting, ok := actuators.AsRequeueAfter(err); ok {
		return actuators.InProgress(after, "%s", waiting.Reason)
	}
	if _, uncertain := actuators.AsUncertain(err); uncertain {
		return err
	}
	return actuators.InProgress(after, "%s", err.Error())
}

// groupOf returns the fair-queuing key: the Machine's owning controller, or its namespace.
func groupOf(machine *machinev1beta1.Machine) string {
	if owner := metav1.GetControllerOf(machine); owner != nil {
		return string(owner.UID)
	}
	return machine.Namespace
}
