package live

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/plan/manifest"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Options are what a plan is made with. All must be set but those that say what they are otherwise.
type Options struct {
	// Client reads the API server itself.
	Client  client.Client
	Catalog *module.Catalog
	// ClusterValues are the defaults of fields that a providerSpec lacks.
	ClusterValues module.ClusterValues
	// Known is what modules may know of the cluster; nil for nothing.
	Known *platform.Cluster
	// ModuleUpdates is the operator's; held when empty.
	ModuleUpdates desired.ModuleUpdates
	// Planner plans, and is called Engine.
	Planner preview.Planner
	Engine  string
	// Refresh has providers compare the instances with their states, and plan themselves: with the credentials that the cluster has, and in
	// the environment of a run, as usual when nil.
	Refresh     bool
	Environment desired.EnvironmentReader
	// States is what states are read with.
	States state.Options
}

// maxReads is how much is read at once.
const maxReads = 10

// Plan returns what the requested objects would do to the cluster.
func Plan(ctx context.Context, requests []*manifest.Request, o Options) (*preview.Preview, error) {
	o.Client = readOnly{o.Client}
	reader, err := desired.NewReader(desired.Options{
		Client: o.Client, Catalog: o.Catalog, Modules: store.New(o.Client, store.Options{}), States: state.New(o.Client, o.States),
		ClusterValues: o.ClusterValues, Cluster: o.Known, ModuleUpdates: o.ModuleUpdates, Environment: o.Environment, WithoutCredentials: !o.Refresh,
	})
	if err != nil {
		return nil, err
	}
	subjects := make([]*subject, len(requests))
	var all []*machine
	for n, request := range requests {
		if subjects[n], err = find(ctx, o.Client, request); err != nil {
			return nil, err
		}
		all = append(all, subjects[n].machines...)
	}
	planned, err := preview.Plan(ctx, requests, o.Planner, o.Engine)
	if err != nil {
		return nil, err
	}
	o.read(ctx, reader, all)
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	planAll(ctx, o, all)
	lives := make([]*preview.Live, len(subjects))
	for n, one := range subjects {
		lives[n] = one.result()
	}
	planned.Attach(lives)
	return planned, nil
}

// read reads what the actuator would do about each Machine.
func (o Options) read(ctx context.Context, reader *desired.Reader, all []*machine) {
	var group sync.WaitGroup
	slots := make(chan struct{}, maxReads)
	for _, one := range all {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			one.read(ctx, reader, o)
		})
	}
	group.Wait()
}

// pendingPlan is a plan to be made of a Machine.
type pendingPlan struct {
	of    *inputs
	input offline.Input
	take  func(offline.Outcome)
}

// newPendingPlan plans what variables would do to the existing infrastructure of a Machine.
func (o Options) newPendingPlan(of *inputs, variables []byte, take func(offline.Outcome)) pendingPlan {
	existing := &offline.Existing{State: of.facts.Raw, Sensitive: of.sensitive, Refresh: o.Refresh}
	if o.Refresh {
		existing.Environment, existing.Files = of.environment, of.files
	}
	return pendingPlan{of: of, input: offline.Input{Variables: variables, Existing: existing}, take: take}
}

// runPlans plans together what is of one module.
func (o Options) runPlans(ctx context.Context, pendingPlans []pendingPlan) {
	var order []string
	of := map[string][]pendingPlan{}
	for _, one := range pendingPlans {
		reference := one.of.module.Reference()
		if of[reference] == nil {
			order = append(order, reference)
		}
		of[reference] = append(of[reference], one)
	}
	var group sync.WaitGroup
	for _, reference := range order {
		batch := of[reference]
		group.Go(func() {
			inputs := make([]offline.Input, len(batch))
			for n, one := range batch {
				inputs[n] = one.input
			}
			for n, outcome := range o.Planner.Plan(ctx, preview.ModuleOf(batch[0].of.module), inputs) {
				batch[n].take(outcome)
			}
		})
	}
	group.Wait()
}

// planAll plans what the edits would do, and what forces new Machines.
func planAll(ctx context.Context, o Options, all []*machine) {
	var pendingPlans []pendingPlan
	for _, one := range all {
		pendingPlans = append(pendingPlans, one.pendingPlans(o)...)
	}
	o.runPlans(ctx, pendingPlans)
	pendingPlans = nil
	for _, one := range all {
		pendingPlans = append(pendingPlans, one.withPinned(o)...)
	}
	o.runPlans(ctx, pendingPlans)
	o.runPlans(ctx, plansOfForces(o, all))
}
