package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/actuators/iac"
	"github.com/machine-iac/machine-iac-operator/internal/engine/supervisor"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
)

const (
	// leaseName is the leader's Lease in the managed namespace. In another namespace, the name of
	// the managed one is appended.
	leaseName = "machine-iac-controllers-leader"
	// releaseTimeout bounds the release of the Lease.
	releaseTimeout = 10 * time.Second
)

// leading ensures that this process's engines do not run while another process leads.
type leading struct {
	*leadership.Leadership
	guard *supervisor.Supervisor
}

// newLeading starts the supervisor and prepares leader election. When it returns, the engines of an
// earlier manager in the work folder have ended.
func newLeading(ctx context.Context, config *rest.Config, o options) (*leading, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name: %w", err)
	}
	l := &leading{}
	identity := host + "_" + string(uuid.NewUUID())
	if !o.leaderElect {
		l.Leadership = leadership.Alone(identity)
	} else if l.Leadership, err = leadership.New(leadership.Options{
		Config: config, Namespace: o.leaseNamespace, Name: o.leaseName(), Former: o.formerLease(), Identity: identity,
		Timing:  o.timing,
		Renewed: func() { l.guard.Heartbeat() }, // before an engine starts
		Logger:  ctrl.Log.WithName("leadership"),
	}); err != nil {
		return nil, err
	}
	l.guard, err = supervisor.Start(ctx, supervisor.Options{
		Dir: o.workDir, Timeout: o.timing.Heartbeat, Grace: o.timing.Grace, Active: l.Active,
		Logger: ctrl.Log.WithName("supervisor"),
	})
	if err != nil {
		return nil, err
	}
	l.guard.Heartbeat()
	return l, nil
}

// leaseName returns the name of the leader's Lease. Managers of several namespaces may keep their
// Leases in one.
func (o *options) leaseName() string {
	if o.leaseNamespace == o.namespace {
		return leaseName
	}
	return leaseName + "-" + o.namespace
}

// formerLease returns the Lease of earlier versions, which is in the managed namespace; zero if it
// is the same.
func (o *options) formerLease() types.NamespacedName {
	if !o.leaseMoved {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: o.namespace, Name: leaseName}
}

// serve runs the manager until ctx ends and all runs have settled, or until this process must exit
// at once.
func (l *leading) serve(ctx context.Context, start func(context.Context) error, runs *trackedActuator) error {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go l.Watch(lasting)
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	select {
	case err := <-ended:
		if err != nil {
			return errors.Join(fmt.Errorf("running the manager: %w", err), l.guard.Stop())
		}
		l.release(lasting, runs)
		return l.guard.Stop()
	case <-l.Lost():
		return errors.Join(leadership.ErrNotLeader, l.guard.Kill())
	case err := <-l.guard.Failed():
		return err
	}
}

// release releases the Lease if all runs have settled and all engines have ended. Otherwise the
// next leader waits until it expires.
func (l *leading) release(ctx context.Context, runs *trackedActuator) {
	log := ctrl.Log.WithName("leadership")
	left, err := l.guard.Processes()
	if err != nil || len(left) > 0 || runs.open.Load() {
		log.Info("Leaving the Lease to expire: engine runs have not settled", "settled", !runs.open.Load(), "processes",
			left, "why", fmt.Sprint(err))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := l.Release(ctx); err != nil {
		log.Error(err, "Cannot release the Lease")
	}
}

// trackedActuator records whether the actuator's runs have settled, which the manager does not
// report when it stops.
type trackedActuator struct {
	*iac.Actuator
	open atomic.Bool
}

var _ manager.LeaderElectionRunnable = &trackedActuator{}

// Start implements manager.Runnable.
func (t *trackedActuator) Start(ctx context.Context) error {
	t.open.Store(true)
	err := t.Actuator.Start(ctx)
	t.open.Store(err != nil)
	return err
}
