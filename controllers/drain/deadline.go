package drain

import (
	"context"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// TimeoutAnnotation bounds how long a Machine is drained, as a Go duration such as "30m". Then
	// its deletion continues.
	TimeoutAnnotation = "machine-iac.io/drain-timeout"
	// StartedAnnotation holds when the drain of a Machine with a TimeoutAnnotation began to
	// proceed, in RFC 3339.
	StartedAnnotation = "machine-iac.io/drain-started"
)

// listTimeout bounds the listing of the remaining pods, which a reconcile waits for.
const listTimeout = 5 * time.Second

// checkDeadline ends a drain that has reached the Machine's timeout.
type checkDeadline struct {
	pool    *pool
	clock   clock.PassiveClock
	metrics *Metrics
	client  client.Client
	drainer *drainer
}

// Reconcile implements pipeline.Step.
func (d *checkDeadline) Reconcile(ctx context.Context, s *scope) (bool, error) {
	now := d.clock.Now()
	if s.progress.since.IsZero() {
		s.progress.since = now
	}
	timeout, err := timeoutOf(s.machine)
	if err != nil {
		d.reportInvalidTimeout(s, err)
	}
	if timeout == 0 {
		return true, nil
	}
	started, known := startOf(s.machine, now)
	if !known {
		return false, d.begin(ctx, s)
	}
	if remaining := started.Add(timeout).Sub(now); remaining > 0 {
		s.RequeueAfter(remaining)
		return true, nil
	}
	message := fmt.Sprintf("Drain timed out after %s (%s); deletion continues. %s", timeout, TimeoutAnnotation,
		d.remainingPods(ctx, s))
	d.pool.drop(s.key)
	s.machine.Status.Conditions = machineapi.WithCondition(s.original.Status.Conditions,
		drainedCondition(TimedOut, message), now)
	s.events = append(s.events[:0], drainTimedOut(s.original, message))
	s.afterWrite = append(s.afterWrite, func() { d.metrics.ended(resultTimeout, now.Sub(started)) })
	return false, nil
}

// reportInvalidTimeout sends an event about an invalid timeout, once per value.
func (d *checkDeadline) reportInvalidTimeout(s *scope, err error) {
	value := s.machine.Annotations[TimeoutAnnotation]
	if reported := s.progress.reportedTimeout; reported != nil && *reported == value {
		return
	}
	s.events = append(s.events, invalidDrainTimeout(s.original, err))
	s.afterWrite = append(s.afterWrite, func() { s.progress.reportedTimeout = &value })
}

// begin records when the timeout began. The write triggers another reconcile.
func (d *checkDeadline) begin(ctx context.Context, s *scope) error {
	s.stale = true
	wanted := s.original.DeepCopy()
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, StartedAnnotation, s.progress.since.UTC().Format(time.RFC3339))
	err := d.client.Patch(ctx, wanted, pipeline.IfUnchanged(s.original))
	if apierrors.IsConflict(err) {
		s.RequeueAfter(pipeline.ConflictRetry)
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("recording when the drain began: %w", err)
	}
	s.progress.replaced = s.original.ResourceVersion
	return nil
}

// remainingPods lists the pods that are still on the Node.
func (d *checkDeadline) remainingPods(ctx context.Context, s *scope) string {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	pods, err := d.drainer.left(ctx, targetOf(s.machine), s.newest())
	switch {
	case err != nil:
		return fmt.Sprintf("The remaining pods could not be listed: %v", err)
	case len(pods) == 0:
		return "No pods remain."
	default:
		return "Remaining pods: " + joinLimited(pods, ", ")
	}
}

// timeoutOf returns how long the drain may take; zero for no limit.
func timeoutOf(machine *machinev1beta1.Machine) (time.Duration, error) {
	value, set := machine.Annotations[TimeoutAnnotation]
	if !set {
		return 0, nil
	}
	timeout, err := time.ParseDuration(value)
	if err != nil || timeout <= 0 {
		return 0, fmt.Errorf("annotation %s is %q, which is not a positive duration: use a value such as \"30m\", or "+
			"remove it; "+
			"the drain continues without a timeout", TimeoutAnnotation, value)
	}
	return timeout, nil
}

// startOf returns when the timeout began, if a valid time is recorded.
func startOf(machine *machinev1beta1.Machine, now time.Time) (time.Time, bool) {
	started, err := time.Parse(time.RFC3339, machine.Annotations[StartedAnnotation])
	return started, err == nil && !started.After(now)
}
