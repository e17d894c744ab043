package iac

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// closeTimeout bounds how long the engine may take to close when everything has settled.
const closeTimeout = 30 * time.Second

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader runs engines.
func (a *Actuator) NeedLeaderElection() bool { return true }

// Start runs the actuator until ctx ends: the engines, the recovery of what was left behind, and the pool. When ctx ends, runs are
// interrupted and saved before the engines are closed. It implements manager.Runnable.
func (a *Actuator) Start(ctx context.Context) error {
	for _, name := range a.engines() {
		if err := a.runners[name].Start(ctx); err != nil {
			return fmt.Errorf("starting what runs of %s need: %w", name, err)
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
