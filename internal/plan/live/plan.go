package live

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Options configure a plan. All are required unless noted.
type Options struct {
	// Client reads the API server without a cache.
	Client  client.Client
	Catalog *module.Catalog
	// ClusterValues are defaults for fields that a providerSpec lacks.
	ClusterValues module.ClusterValues
	// Known is what modules may know about the cluster; optional.
	Known *module.Cluster
	// ModuleUpdates is the operator's setting; defaults to held.
	ModuleUpdates desired.ModuleUpdates
	// Planner is shown to users under the name Engine.
	Planner preview.Planner
	Engine  string
	// Refresh lets providers plan and compare instances with their states. They get the cluster's credentials and the
	// environment of a run, which Environment reads; nil selects the default.
	Refresh bool
	// All plans every Machine of a MachineDeployment. By default, one stands for those with the same providerSpec.
	All         bool
	Environment desired.EnvironmentReader
	States      state.Options
	// ModuleKeys are the user's. Only stored modules signed by them are used: a module configures and starts programs,
	// and anyone who can write Secrets can store one.
	ModuleKeys *store.Keys
}

// maxReads bounds concurrent reads.
const maxReads = 10

// Plan returns what the requested objects would do to the cluster.
func Plan(ctx context.Context, requests []*preview.Request, o Options) (*preview.Preview, error) {
	o.Client = readOnly{o.Client}
	stored := store.New(o.Client, store.Options{Keys: o.ModuleKeys, Vouched: true, Known: o.Catalog.Has})
	reader, err := desired.NewReader(desired.Options{
		Client: o.Client, Catalog: o.Catalog, Modules: stored, States: state.New(o.Client, o.States),
		ClusterValues: o.ClusterValues, Cluster: o.Known, ModuleUpdates: o.ModuleUpdates, Environment: o.Environment,
		WithoutCredentials: !o.Refresh,
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
		if err := one.rollOut(ctx, o.Client); err != nil {
			return nil, err
		}
		lives[n] = one.result()
	}
	planned.Attach(lives)
	return planned, nil
}

// read determines what the actuator would do about each Machine.
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

type pendingPlan struct {
	of    *inputs
	input offline.Input
	take  func(offline.Outcome)
}

// newPendingPlan plans what the variables would do to a Machine's existing infrastructure.
func (o Options) newPendingPlan(of *inputs, variables []byte, take func(offline.Outcome)) pendingPlan {
	existing := &offline.Existing{State: of.facts.Raw, Sensitive: of.sensitive, Refresh: o.Refresh}
	if o.Refresh {
		existing.Environment, existing.Files = of.environment, of.files
	}
	return pendingPlan{of: of, input: offline.Input{Variables: variables, Existing: existing}, take: take}
}

// runPlans plans all inputs of one module together.
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

// planAll plans the edits and finds out what forces replacements.
func planAll(ctx context.Context, o Options, all []*machine) {
	all, share := o.withoutAlike(all)
	defer share()
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
