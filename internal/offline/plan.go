package offline

import (
	"bytes"
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

	"github.com/machine-iac/machine-iac-operator/internal/tofu"
)

// Input is what a plan is made for.
type Input struct {
	// Variables are the module's variables machine, provider_spec and user_data: one JSON object. Its strings are data, never
	// templates.
	Variables []byte
	// Unknown says what of them is not known.
	Unknown Unknown
}

// Unknown says which variables are not known before there is a Machine and a cluster. What Variables has in their place is not used.
type Unknown struct {
	// Name is the Machine's name, of which NamePrefix is known.
	Name       bool   `json:"name"`
	NamePrefix string `json:"name_prefix"`
	// UID is the Machine's UID.
	UID bool `json:"uid"`
	// ClusterID is the name of the cluster.
	ClusterID bool `json:"cluster_id"`
	// UserData is what the instance reads when it boots first.
	UserData bool `json:"user_data"`
}

// Plan is what the engine plans.
type Plan struct {
	// Resources are those that change, in the engine's order of addresses.
	Resources []Resource
	// Reads are the addresses of the data sources that an apply would read.
	Reads []string
	// Open are the addresses of resources and outputs with conditions that cannot be decided before an apply.
	Open []string
	// Outputs are the module's outputs.
	Outputs Values
	// Warnings are the engine's.
	Warnings []tofu.Diagnostic
}

// Resource is a planned change of one resource.
type Resource struct {
	Address string
	Type    string
	Action  tofu.Action
	Values  Values
}

// Values are those of a resource or of all outputs, as JSON decodes them, with numbers as json.Number.
type Values struct {
	// After has the values after the change. It lacks what is unknown.
	After any
	// Unknown and Sensitive have true in place of each value that is unknown, or that must not be shown.
	Unknown, Sensitive any
}

// Outcome is a plan, or why there is none: a [*tofu.Error] where the engine refuses it.
type Outcome struct {
	Plan *Plan
	Err  error
}

// maxCalls bounds the inputs that one engine plans.
const maxCalls = 32

// Plan plans the module for each of the inputs, and answers as many outcomes. Inputs share engines, for starting one costs more than
// most plans do.
func (p *Planner) Plan(ctx context.Context, m Module, inputs []Input) []Outcome {
	outcomes := make([]Outcome, len(inputs))
	prepared, err := p.module(ctx, m)
	if err != nil {
		for n := range outcomes {
			outcomes[n].Err = err
		}
		return outcomes
	}
	size := min(maxCalls, (len(inputs)+cap(p.slots)-1)/cap(p.slots))
	var group sync.WaitGroup
	for at := 0; at < len(inputs); at += size {
		end := min(at+size, len(inputs))
		group.Go(func() { prepared.planAll(ctx, inputs[at:end], outcomes[at:end]) })
	}
	group.Wait()
	return outcomes
}

// planAll plans the inputs with one engine. Where it refuses them, each is planned by itself, so that none suffers from another.
func (m *module) planAll(ctx context.Context, inputs []Input, outcomes []Outcome) {
	plans, err := m.plan(ctx, inputs)
	var refused *tofu.Error
	if len(inputs) > 1 && errors.As(err, &refused) && refused.Class != tofu.Interrupted {
		for n := range inputs {
			m.planAll(ctx, inputs[n:n+1], outcomes[n:n+1])
		}
		return
	}
	for n := range outcomes {
		if outcomes[n].Err = err; err == nil {
			outcomes[n].Plan = plans[n]
		}
	}
}

// plan answers a plan for each input.
func (m *module) plan(ctx context.Context, inputs []Input) (plans []*Plan, err error) {
	select {
	case m.planner.slots <- struct{}{}:
		defer func() { <-m.planner.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	w, err := m.borrow(len(inputs))
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
	_, err = w.engine.PlanJSON(ctx, &written, tfexec.VarFile(w.variables()), tfexec.Out(w.plan()),
		tfexec.Lock(false), tfexec.Refresh(false), tfexec.Reattach(m.reattach))
	if err != nil {
		return nil, engineError(ctx, tofu.OpPlan, written.Bytes(), err)
	}
	w.engine.SetStdout(nil)
	shown, err := w.engine.ShowPlanFile(ctx, w.plan(), tfexec.JSONNumber(true), tfexec.Reattach(m.reattach))
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	m.prune(shown)
	return plansOf(shown, tofu.ReadStream(written.Bytes(), nil).Diagnostics, len(inputs)), nil
}

// prune takes out of a plan what is unknown without anybody having said so.
func (m *module) prune(shown *tfjson.Plan) {
	for _, change := range shown.ResourceChanges {
		for _, provider := range m.standIns {
			if schema, ok := provider.resources[change.Type]; ok && change.Mode == tfjson.ManagedResourceMode {
				schema.prune(change.Change.AfterUnknown, m.source.resources[[2]string{change.Type, change.Name}])
			}
		}
	}
}

// variablesOf answers those of the root module.
func variablesOf(inputs []Input) ([]byte, error) {
	all := map[string]any{}
	for n, in := range inputs {
		var variables map[string]json.RawMessage
		if err := json.Unmarshal(in.Variables, &variables); err != nil {
			return nil, fmt.Errorf("reading the variables: %w", err)
		}
		all[callName(n)] = map[string]any{
			"machine": variables["machine"], "provider_spec": variables["provider_spec"], "unknown": in.Unknown,
		}
		all[callName(n)+userDataSuffix] = variables["user_data"]
	}
	return json.Marshal(all)
}

// plansOf takes the engine's plan apart.
func plansOf(shown *tfjson.Plan, warnings []tofu.Diagnostic, calls int) []*Plan {
	plans := make([]*Plan, calls)
	for n := range plans {
		plans[n] = &Plan{}
		if outputs := shown.OutputChanges[callName(n)]; outputs != nil {
			plans[n].Outputs = valuesOf(outputs)
		}
	}
	for _, change := range shown.ResourceChanges {
		n, address, ours := callOf(change.Address)
		action := actionOf(change.Change.Actions)
		switch {
		case !ours || address == laterName || action == tofu.ActionNoOp:
		case change.Mode == tfjson.DataResourceMode:
			plans[n].Reads = append(plans[n].Reads, address)
		default:
			plans[n].Resources = append(plans[n].Resources, Resource{
				Address: address, Type: change.Type, Action: action, Values: valuesOf(change.Change),
			})
		}
	}
	for _, check := range shown.Checks {
		kind := check.Address.Kind
		decidable := kind == tfjson.CheckKindResource || kind == tfjson.CheckKindOutputValue
		if n, address, ours := callOf(check.Address.ToDisplay); ours && decidable && check.Status == tfjson.CheckStatusUnknown {
			plans[n].Open = append(plans[n].Open, address)
		}
	}
	addWarnings(plans, warnings)
	for _, plan := range plans {
		slices.Sort(plan.Reads)
		slices.Sort(plan.Open)
	}
	return plans
}

// addWarnings adds each to the plan that it is about, or to all.
func addWarnings(plans []*Plan, warnings []tofu.Diagnostic) {
	for _, warning := range warnings {
		for n, plan := range plans {
			if call, address, ours := callOf(warning.Address); !ours || call == n {
				own := warning
				own.Address = address
				plan.Warnings = append(plan.Warnings, own)
			}
		}
	}
}

func valuesOf(change *tfjson.Change) Values {
	return Values{After: change.After, Unknown: change.AfterUnknown, Sensitive: change.AfterSensitive}
}

func actionOf(actions tfjson.Actions) tofu.Action {
	switch {
	case actions.Create():
		return tofu.ActionCreate
	case actions.Read():
		return tofu.ActionRead
	case actions.Update():
		return tofu.ActionUpdate
	case actions.Delete():
		return tofu.ActionDelete
	case actions.Replace():
		return tofu.ActionReplace
	case actions.Forget():
		return tofu.ActionForget
	}
	return tofu.ActionNoOp
}

// engineError answers why the engine failed.
func engineError(ctx context.Context, op tofu.Op, written []byte, failure error) error {
	if ctx.Err() != nil {
		return &tofu.Error{Op: op, Class: tofu.Interrupted, Err: context.Cause(ctx)}
	}
	report := tofu.ReadStream(written, nil)
	if found := report.Errors(); len(found) > 0 {
		for i := range found {
			if _, address, ours := callOf(found[i].Address); ours {
				found[i].Address = address
			}
			found[i].File = strings.TrimPrefix(found[i].File, moduleDir+"/")
		}
		return &tofu.Error{Op: op, Class: tofu.InvalidConfiguration, Diagnostics: found}
	}
	return &tofu.Error{Op: op, Class: tofu.Unknown, Err: failure}
}

func sum(text string) []byte {
	found := sha256.Sum256([]byte(text))
	return found[:]
}
