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
	// TimeoutAnnotation bounds how long a Machine is drained, as a Go duration such as "30m". Then its deletion goes on.
	TimeoutAnnotation = "machine-iac.io/drain-timeout"
	// StartedAnnotation holds when the drain of a Machine with a TimeoutAnnotation began to proceed, in RFC 3339.
	StartedAnnotation = "machine-iac.io/drain-started"
)

// lastLookTimeout bounds the look at what is left behind, which a reconcile waits for.
const lastLookTimeout = 5 * time.Second

// deadline ends a drain that has taken as long as its Machine allows.
type deadline struct {
	pool    *pool
	clock   clock.PassiveClock
	metrics *Metrics
	client  client.Client
	drainer *drainer
}

// Reconcile implements step.
func (d *deadline) Reconcile(ctx context.Context, s *scope) (bool, error) {
	now := d.clock.Now()
	if s.record.since.IsZero() {
		s.record.since = now
	}
	timeout, err := timeoutOf(s.machine)
	if err != nil {
		d.complain(s, err)
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
	message := fmt.Sprintf("Drain timed out after %s (%s); deletion continues. %s", timeout, TimeoutAnnotation, d.leftBehind(ctx, s.machine))
	d.pool.drop(s.key)
	s.machine.Status.Conditions = machineapi.WithCondition(s.original.Status.Conditions, drained(TimedOut, message), now)
	s.notices = append(s.notices[:0], drainTimedOut(s.original, message))
	s.settled = append(s.settled, func() { d.metrics.ended("timeout", now.Sub(started)) })
	return false, nil
}

// complain tells of a value that is no timeout, once per value.
func (d *deadline) complain(s *scope, err error) {
	value := s.machine.Annotations[TimeoutAnnotation]
	if told := s.record.faultyTimeout; told != nil && *told == value {
		return
	}
	s.notices = append(s.notices, invalidDrainTimeout(s.original, err))
	s.settled = append(s.settled, func() { s.record.faultyTimeout = &value })
}

// begin records since when the time counts. The write wakes the Machine again.
func (d *deadline) begin(ctx context.Context, s *scope) error {
	s.overtaken = true
	wanted := s.original.DeepCopy()
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, StartedAnnotation, s.record.since.UTC().Format(time.RFC3339))
	err := d.client.Patch(ctx, wanted, pipeline.IfUnchanged(s.original))
	if apierrors.IsConflict(err) {
		s.RequeueAfter(pipeline.ConflictRetry)
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("recording when the drain began: %w", err)
	}
	s.record.replaced = s.original.ResourceVersion
	return nil
}

// leftBehind names the pods that are still on the Node.
func (d *deadline) leftBehind(ctx context.Context, machine *machinev1beta1.Machine) string {
	ctx, cancel := context.WithTimeout(ctx, lastLookTimeout)
	defer cancel()
	pods, err := d.drainer.left(ctx, targetOf(machine))
	switch {
	case err != nil:
		return fmt.Sprintf("The remaining pods could not be listed: %v", err)
	case len(pods) == 0:
		return "No pods remain."
	default:
		return "Remaining pods: " + enumerated(pods, ", ")
	}
}

// timeoutOf answers how long the Machine may be drained; zero for as long as it takes.
func timeoutOf(machine *machinev1beta1.Machine) (time.Duration, error) {
	value, set := machine.Annotations[TimeoutAnnotation]
	if !set {
		return 0, nil
	}
	timeout, err := time.ParseDuration(value)
	if err != nil || timeout <= 0 {
		return 0, fmt.Errorf("annotation %s is %q, which is not a positive duration: use a value such as \"30m\", or remove it; "+
			"the drain continues without a timeout", TimeoutAnnotation, value)
	}
	return timeout, nil
}

// startOf answers since when the time counts, if that was recorded in a way that can be.
func startOf(machine *machinev1beta1.Machine, now time.Time) (time.Time, bool) {
	started, err := time.Parse(time.RFC3339, machine.Annotations[StartedAnnotation])
	return started, err == nil && !started.After(now)
}
