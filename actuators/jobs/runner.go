package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/remote"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/actuators/terraform"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

const (
	namePrefix = "machine-run-"
	// maxName is the limit for a Job's name, which its Pods have as a label. nameSuffix is the
	// length of its random part: a run with a lookup may open more than once.
	maxName, nameSuffix = 63, 5
	// writeTimeout bounds requests about a Job that is no longer wanted.
	writeTimeout = 30 * time.Second
	// killSlack is how much longer than its engine's grace period a process may take.
	killSlack = 15 * time.Second
)

// Options configures a Runner. All fields but Logger and Clock are required.
type Options struct {
	// Client creates Jobs and Secrets in Namespace, and reads Jobs and Pods.
	Client    client.Client
	Namespace string
	Template  Template
	// Server accepts the Pods' connections. Backend serves the states to this process.
	Server  *remote.Server
	Backend terraform.Backend
	// Settings returns the engine's settings for a Pod.
	Settings func() ([]byte, error)
	// Manager identifies this process on the Jobs that it creates.
	Manager string
	// InterruptGrace is how long an interrupted engine may take to save its state.
	InterruptGrace time.Duration
	// Life is how long an engine lives after its manager was last known to lead. Grace is how long
	// after that it is killed.
	Life, Grace time.Duration
	// Dir stores unsaved states.
	Dir    string
	Logger logr.Logger
	Clock  clock.Clock
}

// Runner implements runner.Runner.
type Runner struct {
	options Options
	manager string
	kept    kept
	starts  atomic.Int64
	open    sync.WaitGroup
}

var (
	_ runner.Runner          = &Runner{}
	_ runner.InstanceChecker = &Runner{}
)

// New returns a Runner. Closing it closes the server and the backend.
func New(o Options) (*Runner, error) {
	if o.Client == nil || o.Namespace == "" || o.Server == nil || o.Backend == nil || o.Settings == nil ||
		o.Manager == "" || o.Life <= 0 || o.Dir == "" ||
		o.Template.Image == "" {
		return nil, errors.New("creating the runner of Jobs: a required option is missing")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	hash := sha256.Sum256([]byte(o.Manager))
	r := &Runner{options: o, manager: hex.EncodeToString(hash[:8]), kept: kept{dir: o.Dir}}
	return r, r.kept.read()
}

// Start implements runner.Runner. It deletes the Jobs of former leaders: their engines have ended
// by now, or will before the locks of their states expire.
func (r *Runner) Start(ctx context.Context) error {
	if err := errors.Join(r.options.Backend.Start(ctx), r.options.Server.Start(ctx)); err != nil {
		return err
	}
	var found batchv1.JobList
	if err := r.options.Client.List(ctx, &found, client.InNamespace(r.options.Namespace),
		client.MatchingLabels{LabelComponent: Component}); err != nil {
		return fmt.Errorf("listing the Jobs of earlier managers: %w", err)
	}
	for i := range found.Items {
		if found.Items[i].Labels[LabelManager] == r.manager {
			continue
		}
		r.options.Logger.Info("Deleting the Job of an earlier manager", "job", found.Items[i].Name)
		if err := r.remove(ctx, &found.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// Starts implements runner.Runner: it counts Jobs, each of which executes one run.
func (r *Runner) Starts() int64 { return r.starts.Load() }

// Close implements runner.Runner. Interrupted engines save through the backend before it closes.
func (r *Runner) Close(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		r.open.Wait()
	}()
	var err error
	select {
	case <-closed:
	case <-ctx.Done():
		err = fmt.Errorf("closing the runner of Jobs: some runs are still open: %w", context.Cause(ctx))
	}
	return errors.Join(err, r.options.Server.Close(), r.options.Backend.Close(ctx))
}

// AbandonedRuns implements runner.Runner.
func (r *Runner) AbandonedRuns() ([]runner.AbandonedRun, error) { return r.kept.list(), nil }

// Discard implements runner.Runner.
func (r *Runner) Discard(id string) error { return r.kept.discard(id) }

// Open implements runner.Runner. It blocks until the Pod runs, which may take long in a queue.
func (r *Runner) Open(ctx context.Context, run runner.RunSpec) (runner.Workspace, error) {
	var served backend.Endpoint
	if run.Session != nil || !run.Search.Reads() {
		var err error
		if served, err = r.options.Backend.Open(run.Session); err != nil {
			return nil, err
		}
	}
	begun, options, err := r.begin(ctx, run, served)
	if err != nil {
		return nil, err
	}
	opened, err := remote.Open(ctx, begun.process, run, options)
	if err != nil {
		return nil, errors.Join(err, options.Close())
	}
	return opened, nil
}

// CheckInstance implements runner.InstanceChecker.
func (r *Runner) CheckInstance(ctx context.Context, run runner.RunSpec, stored []byte) (gone bool, err error) {
	served, err := r.options.Backend.OpenCopy(stored)
	if err != nil {
		return false, err
	}
	run.ID += "-check"
	begun, options, err := r.begin(ctx, run, served)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, options.Close()) }()
	return remote.CheckInstance(ctx, begun.process, run, options)
}

// begun is a run with a Job.
type begun struct {
	runner  *Runner
	job     *batchv1.Job
	process *remote.Process
	served  backend.Endpoint
	// waits receives what the Job waits for; may be nil.
	waits func(what string)
	once  sync.Once
}

// begin creates a run's Job and waits for its process. On failure it closes the served endpoint.
func (r *Runner) begin(ctx context.Context, run runner.RunSpec,
	served backend.Endpoint) (*begun, remote.OpenOptions, error) {
	b := &begun{runner: r, served: served, waits: run.Waits}
	r.open.Add(1)
	settings, err := r.options.Settings()
	if err == nil {
		err = b.make(ctx, nameOf(run))
	}
	if err == nil {
		err = b.untilConnected(ctx)
		b.goesOn()
	}
	if err != nil {
		class := failure.Transient
		if ctx.Err() != nil {
			class = failure.Interrupted
		}
		return nil, remote.OpenOptions{}, errors.Join(&failure.Error{Op: failure.OpOpen, Class: class, Err: err}, b.close())
	}
	return b, remote.OpenOptions{
		Settings: settings, State: served, Life: r.options.Life, Patience: r.options.InterruptGrace + killSlack,
		Lost: b.lost, Close: b.close, Keep: func(unsaved []byte) error { return r.kept.keep(run, unsaved) },
	}, nil
}

// nameOf returns a unique ID: a search shares the ID of its run.
func nameOf(run runner.RunSpec) string {
	if run.Search == engine.SearchNone {
		return run.ID
	}
	return run.ID + "-" + string(run.Search)
}

// make creates the Job and its Secret. The Job comes first, so that the Secret cannot be left
// behind; the Pod waits for it.
func (b *begun) make(ctx context.Context, id string) error {
	r := b.runner
	process, ticket, err := r.options.Server.Expect(id)
	if err != nil {
		return err
	}
	b.process = process
	labels := map[string]string{LabelComponent: Component, "app.kubernetes.io/name": "machine-iac-operator", LabelRun: id,
		LabelManager: r.manager}
	name := strings.ToLower(namePrefix + id)
	name = strings.TrimRight(name[:min(len(name), maxName-nameSuffix-1)], "-") + "-" + rand.String(nameSuffix)
	job := r.options.Template.job(name, labels)
	job.Namespace = r.options.Namespace
	if err := r.options.Client.Create(ctx, job); err != nil {
		return fmt.Errorf("creating the run's Job: %w", err)
	}
	b.job = job
	r.starts.Add(1)
	if err := r.options.Client.Create(ctx, secret(job, labels, ticket.Files())); err != nil {
		return fmt.Errorf("creating the Secret of Job %s: %w", job.Name, err)
	}
	return nil
}

// close frees the run's resources and deletes its Job. It may be called repeatedly.
func (b *begun) close() (err error) {
	b.once.Do(func() {
		defer b.runner.open.Done()
		b.served.Close()
		if b.process != nil {
			b.process.Close()
		}
		if b.job != nil {
			//nolint:forbidigo // the run has ended, and so may its context have
			ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
			defer cancel()
			err = b.runner.remove(ctx, b.job)
		}
	})
	return err
}

// remove deletes a Job and its dependents.
func (r *Runner) remove(ctx context.Context, job *batchv1.Job) error {
	err := r.options.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &job.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Job %s: %w", job.Name, err)
	}
	return nil
}
