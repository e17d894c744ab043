package iac

import (
	"context"

	"github.com/machine-iac/machine-iac-operator/actuators"
	claims "github.com/machine-iac/machine-iac-operator/actuators/addresses"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// claimAddresses claims the addresses that a Machine takes from pools. It returns an error while
// any are pending, since nothing can be rendered without them. An instance keeps the addresses that
// it was created with.
func (a *Actuator) claimAddresses(ctx context.Context, o *observation) error {
	if o.asked == runs.Destroy || o.facts.Foreign() && !o.facts.Adoption.Requested() ||
		o.facts.Adoption.Adoption == lifecycle.AdoptionRelease {
		return nil
	}
	pools := claims.PoolsOf(a.desired.Complete(o.machine))
	if len(pools) == 0 {
		return nil
	}
	o.claims = true
	standing := claims.New(a.client).Assign(ctx, o.machine, pools, o.asked == runs.Create && !o.facts.CutShort())
	standing.Publish(&o.status.Conditions, a.clock.Now())
	switch {
	case standing.Err != nil:
		failed := reporting.Typed(o.asked, standing.Err).In(reporting.ProgressInterval)
		reporting.Failure(a.recorder, a.metrics, o.asked, o.machine, failed)
		return failed
	case standing.Missing > 0:
		return actuators.InProgress(claims.Retry, "Waiting on %d IP address claims to be bound", standing.Missing)
	}
	return nil
}

// releaseAddresses releases the claims of a Machine that has no instance any more.
func (a *Actuator) releaseAddresses(ctx context.Context, o *observation) error {
	if !claims.MayHave(o.machine, o.status.Conditions) && len(claims.PoolsOf(a.desired.Complete(o.machine))) == 0 {
		return nil
	}
	if err := claims.New(a.client).Release(ctx, o.machine); err != nil {
		return reporting.Typed(runs.Destroy, err)
	}
	return nil
}
