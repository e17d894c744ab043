package machinedeployment

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	note "github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// Name is the controller's name in logs, metrics and events.
const Name = "machinedeployment"

// setKind is the kind of a MachineSet.
const setKind = "MachineSet"

// Options configure a Controller. Client, Reader and Recorder must be set.
type Options struct {
	pipeline.Common
}

// Controller reconciles MachineDeployments.
type Controller struct {
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	pace     *pipeline.Pace
	steps    []pipeline.Step[*scope]
	// gone are the steps if there is no MachineDeployment.
	gone []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// errReadLive ends a run of the steps on the cache: a step wants to write.
var errReadLive = errors.New("the API server must be read before a write")

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	// deployment is a copy of the MachineDeployment. Steps change its status only in [Controller.report].
	deployment *v1beta1.MachineDeployment
	// before is the MachineDeployment as it was read; nil if there is none.
	before *v1beta1.MachineDeployment
	// reader reads what the steps decide from: the cache, or the API server if live is set.
	reader client.Reader
	live   bool
	// wrote is set by the first write; the steps after it wait for the next reconcile.
	wrote bool
	// created is set when the MachineSet of a new revision was created.
	created bool
	// invalid is why the spec cannot be followed.
	invalid error

	// selector and bounds are set by validateSpec.
	selector labels.Selector
	bounds   bounds
	// all are the MachineSets of the namespace, and revisions those of the MachineDeployment, the
	// oldest first. readFleet sets them. They may belong to the cache: read only.
	read      bool
	all       []*machinev1beta1.MachineSet
	revisions []*revision
	// orphans are MachineSets without a controller that the MachineDeployment, or a former one of its
	// name, still holds. readFleet sets them.
	orphans []*revision
	// current is the revision of the template; nil if it has no MachineSet yet.
	current *revision
}

// revision is a MachineSet and its Machines.
type revision struct {
	set *machinev1beta1.MachineSet
	// machines are those that are not being deleted.
	machines []*machinev1beta1.Machine
	// available and ready say which Machines are, by their index.
	available, ready []bool
	// leaving is how many are being deleted.
	leaving int
}

// New returns a Controller.
func New(options Options) *Controller {
	options.SetClock()
	write := writer{options.Client}
	read, release := &readFleet{nodes: options.Client, clock: options.Clock}, &release{writer: write}
	return &Controller{
		client: options.Client, reader: options.Reader, recorder: options.Recorder, clock: options.Clock,
		pace: pipeline.NewPace(options.Clock),
		steps: []pipeline.Step[*scope]{
			&validateSpec{},
			read,
			release,
			&ensureCurrent{writer: write},
			&propagate{writer: write},
			&judge{writer: write},
			&move{writer: write},
			&scale{writer: write},
			&prune{writer: write},
		},
		gone: []pipeline.Step[*scope]{read, release},
	}
}

// Reconcile takes the next step of one MachineDeployment, and updates its status.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if wait := c.pace.Wait(request.NamespacedName); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	s, err := c.run(ctx, request, c.client, false)
	if errors.Is(err, errReadLive) {
		s, err = c.run(ctx, request, c.reader, true)
	}
	if s == nil || s.before == nil {
		c.pace.Forget(request.NamespacedName)
		return reconcile.Result{}, err
	}
	err = s.Written(err)
	if s.read || s.invalid != nil {
		c.report(s, err)
		err = errors.Join(err, s.Written(c.patchStatus(ctx, s)))
	}
	if err != nil {
		if ctx.Err() == nil { // otherwise the manager is stopping
			note.Warning(s.deployment, "ReconcileError", "Reconcile", err.Error()).Send(c.recorder)
		}
		return reconcile.Result{}, err
	}
	if s.wrote {
		s.RequeueAfter(pipeline.ConflictRetry) // in case that no event follows
	}
	c.pace.Reconciled(request.NamespacedName, s.machines())
	return s.Result(), nil
}

// run runs the steps on what the reader reads. It returns no scope if the MachineDeployment cannot be
// read.
func (c *Controller) run(ctx context.Context, request reconcile.Request, reader client.Reader,
	live bool) (*scope, error) {
	s := &scope{deployment: &v1beta1.MachineDeployment{}, reader: reader, live: live}
	if err := reader.Get(ctx, request.NamespacedName, s.deployment); err != nil {
		if client.IgnoreNotFound(err) == nil {
			s.deployment.Namespace, s.deployment.Name = request.Namespace, request.Name
			s.selector = labels.Everything()
			return s, pipeline.Run(ctx, c.gone, s)
		}
		return nil, fmt.Errorf("getting the MachineDeployment: %w", err)
	}
	s.before = s.deployment.DeepCopy()
	return s, pipeline.Run(ctx, c.steps, s)
}

// machines is how many Machines the scope has.
func (s *scope) machines() int {
	count := 0
	for _, r := range s.revisions {
		count += len(r.machines)
	}
	return count
}

// old returns the revisions but the current one, the oldest first.
func (s *scope) old() []*revision {
	var old []*revision
	for _, r := range s.revisions {
		if r != s.current {
			old = append(old, r)
		}
	}
	return old
}

// named returns the revision whose MachineSet has a name, or nil.
func (s *scope) named(name string) *revision {
	for _, r := range s.revisions {
		if r.set.Name == name {
			return r
		}
	}
	return nil
}

// writer writes for the steps. It refuses to if the scope was read from the cache.
type writer struct {
	client client.Client
}

// patch writes what differs, unless the object has changed since it was read.
func (w writer) patch(ctx context.Context, s *scope, before, after client.Object) error {
	return w.write(s, func() error { return w.client.Patch(ctx, after, pipeline.IfUnchanged(before)) })
}

func (writer) write(s *scope, do func() error) error {
	if !s.live {
		return errReadLive
	}
	s.wrote = true
	return do()
}
