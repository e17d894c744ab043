package offline

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
)

// Input is what to plan.
type Input struct {
	// Variables are the module's variables machine, provider_spec and user_data in one JSON object. Strings are data,
	// never templates.
	Variables []byte
	// Unknown marks the unknown variables.
	Unknown Unknown
	// Existing is the instance to change; nil for a new instance.
	Existing *Existing

	// putOff reports that data sources wait for an apply despite a state, because it lacks what they would read.
	putOff bool
	// once has the addresses of blocks that are planned once instead of for each result of a data source.
	once []string
}

// Unknown marks variables that are unknown before the Machine and the cluster exist. Their values in Variables are
// ignored.
type Unknown struct {
	// Name is the Machine's name; its NamePrefix is known.
	Name       bool   `json:"name"`
	NamePrefix string `json:"name_prefix"`
	UID        bool   `json:"uid"`
	// ClusterID is the cluster's infrastructure name.
	ClusterID bool `json:"cluster_id"`
	// UserData is read by the instance on first boot.
	UserData bool `json:"user_data"`
}

// Plan is the engine's plan.
type Plan struct {
	// Resources are the changed ones, in the engine's order.
	Resources []Resource
	// Reads are the addresses of data sources that an apply would read.
	Reads []string
	// Open are the addresses of resources, outputs and checks whose conditions cannot be decided before an apply.
	Open     []string
	Outputs  Values
	Warnings []failure.Diagnostic
	// Broken are the messages of failed conditions of resources, for a plan of an existing instance. Such a plan cannot
	// be applied, and may lack dependent resources.
	Broken []string
	// Report is the engine's report of the plan.
	Report *engine.Report
}

// Resource is a planned change of one resource.
type Resource struct {
	Address string
	Type    string
	Action  engine.Action
	Values  Values
	// Forces are the paths that force a replacement, each a list of names and indices.
	Forces []any
	// Unsure reports that the provider did not plan the change: more may change, or the resource may be replaced.
	Unsure bool
}

// Outcome is a plan, or an error: a [*failure.Error] if the engine refused to plan.
type Outcome struct {
	Plan *Plan
	Err  error
}

// maxCalls bounds the inputs per engine process.
const maxCalls = 32

// Plan plans the module for each input and returns the outcomes in the same order. Inputs share engine processes,
// because starting one costs more than most plans.
func (p *Planner) Plan(ctx context.Context, m Module, inputs []Input) []Outcome {
	outcomes := make([]Outcome, len(inputs))
	prepared, err := p.module(ctx, m)
	if err != nil {
		for n := range outcomes {
			outcomes[n].Err = err
		}
		return outcomes
	}
	var group sync.WaitGroup
	for _, batch := range batchesOf(inputs, cap(p.slots)) {
		group.Go(func() {
			together, found := make([]Input, len(batch)), make([]Outcome, len(batch))
			for n, at := range batch {
				together[n] = inputs[at]
			}
			prepared.planAll(ctx, together, found)
			for n, at := range batch {
				outcomes[at] = found[n]
			}
		})
	}
	group.Wait()
	return outcomes
}

// planAll plans the inputs in one engine process. If that fails, it plans each alone, so that one bad input cannot
// affect others.
func (m *module) planAll(ctx context.Context, inputs []Input, outcomes []Outcome) {
	plans, err := m.plan(ctx, inputs)
	var refused *failure.Error
	if len(inputs) > 1 && errors.As(err, &refused) && refused.Class != failure.Interrupted {
		for n := range inputs {
			m.planAll(ctx, inputs[n:n+1], outcomes[n:n+1])
		}
		return
	}
	if len(inputs) == 1 {
		if plan, tried, err := m.planNamed(ctx, inputs[0], err); tried {
			outcomes[0] = Outcome{Plan: plan, Err: err}
			return
		}
	}
	for n := range outcomes {
		if outcomes[n].Err = err; err == nil {
			outcomes[n].Plan = plans[n]
		}
	}
}

// plan returns a plan for each input. It defers data sources that the states lack until an apply, and then plans blocks
// that depend on their results once.
func (m *module) plan(ctx context.Context, inputs []Input) ([]*Plan, error) {
	select {
	case m.planner.slots <- struct{}{}:
		defer func() { <-m.planner.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if inputs[0].later() {
		inputs = m.markOnce(inputs, m.known())
	}
	plans, err := m.planOnce(ctx, inputs)
	if errors.Is(err, errNotRecorded) {
		inputs = slices.Clone(inputs)
		for n := range inputs {
			inputs[n].putOff = true
		}
		plans, err = m.planOnce(ctx, inputs)
	}
	for {
		refused := slices.DeleteFunc(uncounted(err), func(address string) bool {
			return slices.Contains(inputs[0].once, address)
		})
		if len(refused) == 0 || !inputs[0].later() {
			return plans, err
		}
		inputs = m.markOnce(inputs, refused)
		plans, err = m.planOnce(ctx, inputs)
	}
}

func (m *module) known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.once)
}

// markOnce marks blocks to be planned once, and remembers data sources for later plans.
func (m *module) markOnce(inputs []Input, addresses []string) []Input {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, address := range addresses {
		if strings.HasPrefix(address, "data.") && !slices.Contains(m.once, address) {
			m.once = append(m.once, address)
		}
	}
	inputs = slices.Clone(inputs)
	for n := range inputs {
		inputs[n].once = slices.Concat(inputs[n].once, addresses)
	}
	return inputs
}

// errNotRecorded is the error for a data source that no state has.
var errNotRecorded = errors.New("the state does not have what a data source would read")

func (m *module) planOnce(ctx context.Context, inputs []Input) (plans []*Plan, err error) {
	w, err := m.workspace(inputs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.release(w)) }()
	variables, err := variablesOf(inputs)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(w.variables(), variables, 0o600); err != nil {
		return nil, fmt.Errorf("writing the variables: %w", err)
	}
	var written bytes.Buffer
	existing := inputs[0].Existing
	options := []tfexec.PlanOption{
		tfexec.VarFile(w.variables()), tfexec.Out(w.plan()), tfexec.Lock(false),
		tfexec.Refresh(existing != nil && existing.Refresh),
	}
	if w.reattach != nil {
		options = append(options, tfexec.Reattach(w.reattach))
	}
	_, failed := w.engine.PlanJSON(ctx, &written, options...)
	report := tofu.ReadStream(written.Bytes(), sensitiveIn(inputs))
	if w.missed() {
		return nil, errNotRecorded
	}
	if failed != nil {
		failed = engineError(ctx, failure.OpPlan, report, failed)
		if existing == nil || !onlyBroken(report) {
			return nil, failed
		}
	}
	shown, err := w.show(ctx)
	if err != nil {
		return plansWithout(inputs, report, failed, err)
	}
	m.prune(shown)
	hide(shown, sensitiveIn(inputs))
	if plans = plansOf(shown, report, len(inputs)); failed != nil && brokenIn(plans) != len(report.Errors()) {
		return plansWithout(inputs, report, failed, failed)
	}
	w.mark(plans)
	return plans, nil
}

// sensitiveIn returns the strings to hide.
func sensitiveIn(inputs []Input) []string {
	var all []string
	for _, in := range inputs {
		if in.Existing != nil {
			all = append(all, in.Existing.Sensitive...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// onlyBroken reports whether failed conditions of resources are a plan's only errors.
func onlyBroken(report *engine.Report) bool {
	found := report.Errors()
	return len(found) > 0 &&
		!slices.ContainsFunc(found, func(d failure.Diagnostic) bool { return !d.ConditionFailed() })
}

// brokenIn counts the failed conditions.
func brokenIn(plans []*Plan) int {
	total := 0
	for _, plan := range plans {
		total += len(plan.Broken)
	}
	return total
}

// plansWithout returns what is known without a plan: for a single input, the failed conditions.
func plansWithout(inputs []Input, report *engine.Report, failed, err error) ([]*Plan, error) {
	if failed == nil || len(inputs) > 1 {
		return nil, cmp.Or(failed, err)
	}
	plan := &Plan{Report: report.ForModule("module." + callName(0))}
	for _, one := range report.Errors() {
		plan.Broken = append(plan.Broken, one.Detail)
	}
	return []*Plan{plan}, nil
}

// prune removes what is unknown only because the stub provider does not know defaults.
func (m *module) prune(shown *tfjson.Plan) {
	for _, change := range shown.ResourceChanges {
		for _, provider := range m.stubs {
			if schema, ok := provider.Schemas()[change.Type]; ok && change.Mode == tfjson.ManagedResourceMode {
				schema.Prune(change.Change.AfterUnknown, m.source.resources[[2]string{change.Type, change.Name}])
			}
		}
	}
}

// variablesOf returns the root module's variables.
func variablesOf(inputs []Input) ([]byte, error) {
	all := map[string]any{}
	for n, in := range inputs {
		var variables map[string]json.RawMessage
		if err := json.Unmarshal(in.Variables, &variables); err != nil {
			return nil, fmt.Errorf("reading the variables: %w", err)
		}
		call := map[string]any{
			"machine": variables["machine"], "provider_spec": variables["provider_spec"], "unknown": in.Unknown,
			"later": in.later(), "once": append([]string{}, in.once...),
			clusterVariable: map[string]any{},
		}
		if cluster, given := variables[clusterVariable]; given {
			call[clusterVariable] = cluster
		}
		all[callName(n)] = call
		all[callName(n)+userDataSuffix] = variables["user_data"]
	}
	return json.Marshal(all)
}

// plansOf splits the engine's plan by input.
func plansOf(shown *tfjson.Plan, report *engine.Report, calls int) []*Plan {
	plans := make([]*Plan, calls)
	for n := range plans {
		plans[n] = &Plan{Report: report.ForModule("module." + callName(n))}
		if outputs := shown.OutputChanges[callName(n)]; outputs != nil {
			plans[n].Outputs = valuesOf(outputs)
		}
	}
	for _, change := range shown.ResourceChanges {
		n, address, ours := callOf(change.Address)
		action := actionOf(change.Change.Actions)
		switch {
		case !ours || strings.HasPrefix(address, laterName+"[") || action == engine.ActionNoOp:
		case change.Mode == tfjson.DataResourceMode:
			plans[n].Reads = append(plans[n].Reads, address)
		default:
			plans[n].Resources = append(plans[n].Resources, Resource{
				Address: address, Type: change.Type, Action: action, Values: valuesOf(change.Change),
				Forces: change.Change.ReplacePaths,
			})
		}
	}
	for _, check := range shown.Checks {
		addCheck(plans, check)
	}
	addWarnings(plans, report.Diagnostics)
	for _, plan := range plans {
		slices.Sort(plan.Reads)
		slices.Sort(plan.Open)
	}
	return plans
}

func valuesOf(change *tfjson.Change) Values {
	return Values{
		Before: change.Before, After: change.After, Unknown: change.AfterUnknown,
		Sensitive: change.AfterSensitive, SensitiveBefore: change.BeforeSensitive,
	}
}

func actionOf(actions tfjson.Actions) engine.Action {
	switch {
	case actions.Create():
		return engine.ActionCreate
	case actions.Read():
		return engine.ActionRead
	case actions.Update():
		return engine.ActionUpdate
	case actions.Delete():
		return engine.ActionDelete
	case actions.Replace():
		return engine.ActionReplace
	case actions.Forget():
		return engine.ActionForget
	}
	return engine.ActionNoOp
}

func engineError(ctx context.Context, op failure.Op, report *engine.Report, cause error) error {
	if ctx.Err() != nil {
		return &failure.Error{Op: op, Class: failure.Interrupted, Err: context.Cause(ctx)}
	}
	if found := report.Errors(); len(found) > 0 {
		for i := range found {
			if _, address, ours := callOf(found[i].Address); ours {
				found[i].Address = address
			}
			found[i].File = strings.TrimPrefix(found[i].File, moduleDir+"/")
		}
		return &failure.Error{Op: op, Class: failure.InvalidConfiguration, Diagnostics: found}
	}
	return &failure.Error{Op: op, Class: failure.Unknown, Err: cause}
}

func sum(text string) []byte {
	found := sha256.Sum256([]byte(text))
	return found[:]
}
