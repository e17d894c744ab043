package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// Name is the controller's name in logs, metrics and events.
const Name = "machinehealthcheck"

// maxRecheck is the longest time between two checks of a Machine that is unhealthy but not due yet.
const maxRecheck = time.Hour

// Options configure a Controller. Client, Reader and Recorder must be set; MaxConcurrentReconciles is 4 when zero. Reader
// reads Nodes that the cache lacks, and remediation templates and requests, as their kinds are not known in advance.
type Options struct {
	pipeline.Common

	// Checks reads MachineHealthChecks as unstructured objects; Client when nil.
	Checks client.Reader
	// Metrics are new ones when nil.
	Metrics *Metrics
}

// Controller reconciles MachineHealthChecks.
type Controller struct {
	client   client.Client
	checks   client.Reader
	recorder events.Recorder
	clock    clock.PassiveClock
	metrics  *Metrics
	memory   *memory
	pace     *pipeline.Pace
	steps    []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	// check is a copy of the MachineHealthCheck. Steps change nothing but its status.
	check *machinev1beta1.MachineHealthCheck
	// specErr is about the values of the spec that are invalid and left out of check; nil for none.
	specErr error
	// now is when the reconcile began: everything is checked as of one time.
	now time.Time
	// history is what earlier reconciles have recorded.
	history *history
	// targets are the Machines that the MachineHealthCheck selects, set by selectTargets and completed by checkHealth and readRequests.
	targets []*target
	// external is the state of external remediation, set by readRequests; nil without a remediation template.
	external *external
	// allowed is set by checkMaxUnhealthy when Machines may be remediated.
	allowed bool
	// events are about the current state, and sent when that is new.
	events []stateEvent
}

// addEvent has an event sent, unless the previous reconcile had the same content for the same topic.
func (s *scope) addEvent(topic, content string, n events.Event) {
	s.events = append(s.events, stateEvent{topic: topic, content: content, event: n})
}

// setCondition sets a condition.
func (s *scope) setCondition(condition machinev1beta1.Condition) {
	s.check.Status.Conditions = machineapi.WithCondition(s.check.Status.Conditions, condition, s.now)
}

// New returns a Controller. It fails when a required option is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Reader == nil || options.Recorder == nil {
		return nil, errors.New("creating the machinehealthcheck controller: Client, Reader and Recorder must all be set in its options")
	}
	if options.Checks == nil {
		options.Checks = options.Client
	}
	options.SetClock()
	if options.Metrics == nil {
		options.Metrics = NewMetrics()
	}
	return &Controller{
		client:   options.Client,
		checks:   options.Checks,
		recorder: options.Recorder,
		clock:    options.Clock,
		metrics:  options.Metrics,
		memory:   newMemory(),
		pace:     pipeline.NewPace(options.Clock),
		steps: []pipeline.Step[*scope]{
			&checkPaused{},
			&validateSpec{metrics: options.Metrics},
			&selectTargets{client: options.Client, reader: options.Reader, metrics: options.Metrics},
			&checkHealth{},
			&readRequests{reader: options.Reader},
			&checkMaxUnhealthy{metrics: options.Metrics},
			&remediate{client: options.Client, recorder: options.Recorder, metrics: options.Metrics},
			&deleteRequests{client: options.Client},
		},
	}, nil
}

// Reconcile checks and remediates the Machines of one MachineHealthCheck.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := newUnstructured()
	err := c.checks.Get(ctx, request.NamespacedName, object)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the MachineHealthCheck: %w", err)
	}
	if err != nil || object.GetDeletionTimestamp() != nil {
		c.memory.forget(request.NamespacedName)
		c.metrics.forget(request.NamespacedName)
		c.pace.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if wait := c.pace.Wait(request.NamespacedName); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}

	check, specErr, err := fromUnstructured(object)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	s := &scope{check: check, specErr: specErr, now: c.clock.Now(), history: c.memory.of(check)}
	before := check.DeepCopy()
	finished, err := pipeline.RunAll(ctx, c.steps, s)
	s.history.sendNew(c.recorder, s.events, finished)
	err = errors.Join(err, s.Written(c.patchStatus(ctx, before, check)))
	if err != nil {
		return reconcile.Result{}, err
	}
	c.pace.Reconciled(request.NamespacedName, len(s.targets))
	return s.Result(), nil
}
