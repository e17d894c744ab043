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

// maxRecheck is how long a Machine that is due later may be left alone.
const maxRecheck = time.Hour

// Options are what a Controller works with. Client, Reader and Recorder must be set; MaxConcurrentReconciles is 4 when zero. Reader is
// asked for Nodes that the cache lacks, and for remediation templates and requests, as their kinds are not known in advance.
type Options struct {
	pipeline.Common

	// Checks reads MachineHealthChecks as they were written; Client when nil.
	Checks client.Reader
	// Metrics are set; new ones when nil.
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
	steps    []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	// check is a copy of the MachineHealthCheck. Steps change nothing but its status.
	check *machinev1beta1.MachineHealthCheck
	// misread tells what of the spec cannot be read and is left out of check; nil for nothing.
	misread error
	// now is when the pass began: all that it judges, it judges at one moment.
	now time.Time
	// past is what earlier passes left behind.
	past *recollection
	// targets are the Machines that the MachineHealthCheck watches over, set by selection and completed by diagnosis and requests.
	targets []*target
	// external is what is known of external remediation, set by requests; nil when there is no remediation template.
	external *external
	// allowed is set by allowance when Machines may be remediated.
	allowed bool
	// sayings are what is the case and worth an event when it was not before.
	sayings []saying
}

// say has an event sent unless the pass before said the same about the same topic.
func (s *scope) say(topic, content string, n events.Event) {
	s.sayings = append(s.sayings, saying{topic: topic, content: content, notice: n})
}

// show sets a condition.
func (s *scope) show(condition machinev1beta1.Condition) {
	s.check.Status.Conditions = machineapi.WithCondition(s.check.Status.Conditions, condition, s.now)
}

// New makes a Controller. It fails when an option that must be set is missing.
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
		steps: []pipeline.Step[*scope]{
			&pause{},
			&legibility{metrics: options.Metrics},
			&selection{client: options.Client, reader: options.Reader, metrics: options.Metrics},
			&diagnosis{},
			&requests{reader: options.Reader},
			&allowance{metrics: options.Metrics},
			&remediation{client: options.Client, recorder: options.Recorder, metrics: options.Metrics},
			&cleanup{client: options.Client},
		},
	}, nil
}

// Reconcile looks after the Machines of one MachineHealthCheck.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := written()
	err := c.checks.Get(ctx, request.NamespacedName, object)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the MachineHealthCheck: %w", err)
	}
	if err != nil || object.GetDeletionTimestamp() != nil {
		c.memory.forget(request.NamespacedName)
		c.metrics.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}

	check, misread, err := typed(object)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	s := &scope{check: check, misread: misread, now: c.clock.Now(), past: c.memory.of(check)}
	before := check.DeepCopy()
	finished, err := pipeline.RunAll(ctx, c.steps, s)
	s.past.tell(c.recorder, s.sayings, finished)
	err = errors.Join(err, s.Written(c.patchStatus(ctx, before, check)))
	if err != nil {
		return reconcile.Result{}, err
	}
	return s.Result(), nil
}
