package iac

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// closeTimeout bounds how long closing the engines may take once all runs have settled.
const closeTimeout = 30 * time.Second

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader runs engines.
func (a *Actuator) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It runs the engines, the recovery and the pool until ctx ends.
// Runs are then interrupted and saved before the engines are closed.
func (a *Actuator) Start(ctx context.Context) error {
	for _, name := range a.engines() {
		if err := a.runners[name].Start(ctx); err != nil {
			return fmt.Errorf("starting the runner of %s: %w", name, err)
		}
	}
	a.recovery.Find()
	recovered := make(chan struct{})
	go func() {
		defer close(recovered)
		a.recovery.Run(ctx)
	}()
	err := a.pool.Start(ctx)
	<-recovered
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, a.closeRunners(closing))
}

// engines returns the engines that have runners, sorted.
func (a *Actuator) engines() []v1alpha1.Engine { return slices.Sorted(maps.Keys(a.runners)) }

func (a *Actuator) closeRunners(ctx context.Context) error {
	var errs []error
	for _, name := range a.engines() {
		errs = append(errs, a.runners[name].Close(ctx))
	}
	return errors.Join(errs...)
}
