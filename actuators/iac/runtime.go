package iac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
)

// recoveryTimeout bounds the recovery of one left-over run.
const recoveryTimeout = time.Minute

// closeTimeout bounds how long the engine may take to close when everything has settled.
const closeTimeout = 30 * time.Second

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader runs engines.
func (a *Actuator) NeedLeaderElection() bool { return true }

// Start runs the actuator until ctx ends: the engine, the recovery of what a dead predecessor left behind, and the pool.
// When ctx ends, runs are interrupted and saved before the engine is closed. It implements manager.Runnable.
func (a *Actuator) Start(ctx context.Context) error {
	for _, name := range a.engines() {
		if err := a.runners[name].Start(ctx); err != nil {
			return fmt.Errorf("starting what runs of %s need: %w", name, err)
		}
	}
	a.recoverLeftovers(ctx)
	err := a.pool.Start(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, a.close(closing))
}

// recoverLeftovers deals with the folders of a predecessor's runs. One that cannot be recovered stays for the next start.
func (a *Actuator) recoverLeftovers(ctx context.Context) {
	for _, name := range a.engines() {
		with := a.runners[name]
		left, err := with.Leftovers()
		if err != nil {
			a.logger.Error(err, "Listing left-over runs; they stay until the next start", "engine", name)
		}
		for _, found := range left {
			if err := a.recoverOne(ctx, with, found); err != nil {
				a.logger.Error(err, "Recovering a left-over run; its folder is kept", "run", found.ID())
			}
		}
	}
}

func (a *Actuator) recoverOne(ctx context.Context, with runner.Runner, found runner.Leftover) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	var who identity
	if raw := found.Identity(); len(raw) > 0 {
		if err := json.Unmarshal(raw, &who); err != nil {
			return fmt.Errorf("reading whose run it was: %w", err)
		}
		if err := a.recoverLeftover(ctx, found, who); err != nil {
			return fmt.Errorf("saving the state of Machine %s/%s: %w", who.Namespace, who.Name, err)
		}
	}
	return with.Discard(found.ID())
}

func uidOf(who identity) types.UID { return types.UID(who.UID) }

// refused reports whether an outcome is a change that was not let through.
func refused(outcome error) bool {
	known, ok := errors.AsType[*actuators.MachineError](outcome)
	return ok && known.Reason == machinev1beta1.UnsupportedChangeMachineError
}
