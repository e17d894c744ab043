package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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

// Options configure a Controller. Client, Reader and Recorder are required; MaxConcurrentReconciles
// defaults to 4. Reader reads the basis of a remediation, and remediation templates and requests,
// whose kinds are not known in advance.
type Options struct {
	pipeline.Common

	// Checks reads MachineHealthChecks as unstructured objects; Client when nil.
	Checks client.Reader
	// Metrics are new ones when nil.
	Metrics *Metrics
	// Settle is how long nothing is remediated after the first reconcile. A manager ends when it cannot
	// reach the API server for long; once the API server is back, Nodes must report before they count.
	Settle time.Duration
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
	// reader reads MachineHealthChecks from the API server.
	reader client.Reader
	// started returns the time of its first call.
	started func() time.Time
	settle  time.Duration
	// decide are the steps that decide; act are the steps that carry out the decision.
	decide, act []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	// live is whether steps read the API server and not the cache.
	live bool
	// check is a copy of the MachineHealthCheck. Steps change nothing but its status.
	check *machinev1beta1.MachineHealthCheck
	// before is the MachineHealthCheck as read.
	before *machinev1beta1.MachineHealthCheck
	// specErr is about the values of the spec that are invalid and left out of check; nil for none.
	specErr error
	// now is when the reconcile began: everything is checked as of one time.
	now time.Time
	// history is what earlier reconciles have recorded.
	history *history
	// targets are the Machines that the MachineHealthCheck selects. selectTargets sets them;
	// checkHealth and readRequests complete them.
	targets []*target
	// missing is how many Machines MachineSets have yet to create, set by selectTargets.
	missing int
	// external is the state of external remediation, set by readRequests; nil without a remediation
	// template.
	external *external
	// allowed is set by checkMaxUnhealthy when Machines may be remediated.
	allowed bool
	// plan is set by planRemediation.
	plan remediationPlan
	// finished is whether the deciding steps have read all they need.
	finished bool
	// events are about the current state, and sent when that is new.
	events []stateEvent
}

// addEvent sends an event, unless the previous reconcile had the same content for the same topic.
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
		return nil, errors.New("creating the machinehealthcheck controller: Client, Reader and Recorder must all be set " +
			"in its options")
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
		reader:   options.Reader,
		started:  sync.OnceValue(options.Clock.Now),
		settle:   options.Settle,
		decide: []pipeline.Step[*scope]{
			&checkPaused{},
			&validateSpec{metrics: options.Metrics},
			&selectTargets{client: options.Client, reader: options.Reader, metrics: options.Metrics},
			&checkHealth{},
			&readRequests{reader: options.Reader},
			&checkMaxUnhealthy{metrics: options.Metrics},
			&planRemediation{},
		},
		act: []pipeline.Step[*scope]{
			&remediate{client: options.Client, recorder: options.Recorder, metrics: options.Metrics},
			&deleteRequests{client: options.Client},
		},
	}, nil
}

// Reconcile checks and remediates the Machines of one MachineHealthCheck. Each part of the cache
// lags behind the API server independently: it may show one of two Nodes that failed together, or a
// deleted Machine gone and its replacement not yet there. So a remediation is decided a second time
// from the API server.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if wait := c.pace.Wait(request.NamespacedName); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	settling := c.started().Add(c.settle).Sub(c.clock.Now())
	s, err := c.decision(ctx, request.NamespacedName, false)
	if s != nil && s.acts() && settling <= 0 {
		s, err = c.decision(ctx, request.NamespacedName, true)
	}
	if s == nil {
		return reconcile.Result{}, err
	}
	var acted error
	if s.acts() && settling > 0 {
		s.RequeueAfter(settling)
	} else {
		_, acted = pipeline.RunAll(ctx, c.act, s)
	}
	s.history.sendNew(c.recorder, s.events, s.finished)
	err = errors.Join(err, acted, s.Written(c.patchStatus(ctx, s.before, s.check)))
	if err != nil {
		return reconcile.Result{}, err
	}
	c.pace.Reconciled(request.NamespacedName, len(s.targets))
	return s.Result(), nil
}

// decision reads a MachineHealthCheck, from the API server when live, and decides what to do. It
// returns nil when the MachineHealthCheck is gone or cannot be read.
func (c *Controller) decision(ctx context.Context, key types.NamespacedName, live bool) (*scope, error) {
	object, err := c.read(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the MachineHealthCheck: %w", err)
	}
	if err != nil || object.GetDeletionTimestamp() != nil {
		c.memory.forget(key)
		c.metrics.forget(key)
		c.pace.Forget(key)
		return nil, nil
	}
	check, specErr, err := fromUnstructured(object)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	s := &scope{live: live, check: check, before: check.DeepCopy(), specErr: specErr, now: c.clock.Now(),
		history: c.memory.of(check)}
	s.finished, err = pipeline.RunAll(ctx, c.decide, s)
	return s, err
}

// read reads a MachineHealthCheck, from the API server when live.
func (c *Controller) read(ctx context.Context, key types.NamespacedName,
	live bool) (*unstructured.Unstructured, error) {
	if !live {
		object := newUnstructured()
		return object, c.checks.Get(ctx, key, object)
	}
	found := newUnstructuredList() // the manager has no permission to get one
	if err := c.reader.List(ctx, found, client.InNamespace(key.Namespace),
		client.MatchingFields{"metadata.name": key.Name}); err != nil {
		return nil, err
	}
	if len(found.Items) == 0 {
		return nil, apierrors.NewNotFound(machinev1beta1.Resource("machinehealthchecks"), key.Name)
	}
	return &found.Items[0], nil
}

// acts reports whether the decision is to remediate a Machine, or to end a remediation.
func (s *scope) acts() bool {
	return len(s.plan.destroy)+len(s.plan.annotate)+len(s.plan.request) > 0 || slices.ContainsFunc(s.targets, s.recovered)
}
