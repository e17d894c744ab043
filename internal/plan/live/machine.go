package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// machine is an existing Machine, its edit, and the result so far.
type machine struct {
	existing, edited *machinev1beta1.Machine
	result           *preview.LiveMachine
	// inputs are those of the edit, present those of the unedited Machine; nil if there is nothing to plan.
	inputs, present *inputs
	// refused says why the plan with the current module was refused, if the pinned one is planned instead.
	refused string
	// strategy is that of the Machine's MachineDeployment; empty for other Machines.
	strategy v1beta1.MachineDeploymentStrategyType
	// restarted reports that the MachineDeployment was restarted since the Machine's revision.
	restarted bool
}

func newMachine(existing, wanted *machinev1beta1.Machine) *machine {
	return &machine{
		existing: existing, edited: edit(existing, wanted),
		result: &preview.LiveMachine{Name: existing.Name, Phase: ptr.Deref(existing.Status.Phase, "")},
	}
}

func (m *machine) is(result preview.EditResult, why string) {
	m.result.Result, m.result.Why = result, why
}

func (m *machine) note(text string) {
	if text != "" {
		m.result.Notes = append(m.result.Notes, text)
	}
}

// read determines what the actuator would do about the edit. If there is nothing to plan, that is the result.
func (m *machine) read(ctx context.Context, reader *desired.Reader, o Options) {
	switch {
	case m.existing.DeletionTimestamp != nil:
		m.is(preview.Gone, "it is being deleted")
		return
	case m.strategy != "" && m.decideWithoutPlan():
		return
	case m.result.Phase == machinev1beta1.PhaseFailed:
		m.is(preview.Gone, "it has failed, and the operator no longer changes it; delete it")
		return
	}
	in, err := o.inputsOf(ctx, reader, m.existing, m.edited)
	switch {
	case desired.IsInvalid(err):
		m.is(preview.Refused, err.Error())
		return
	case err != nil:
		m.is(preview.Undecided, err.Error())
		return
	}
	m.result.Module = in.module.Reference()
	m.note(in.moduleNote)
	m.result.Warnings = in.warnings
	m.fields(in)
	if !m.hasInstance(in) {
		return
	}
	m.inputs = in
	if in.facts.Lock != nil {
		m.note(fmt.Sprintf("A run has its state now (%s), so this is planned from what was saved last.", in.facts.Lock))
	}
	if o.Refresh {
		if m.present, err = o.inputsOf(ctx, reader, m.existing, m.existing); err != nil {
			m.note("Drift was not checked: " + err.Error())
		}
	}
}

func (m *machine) hasInstance(in *inputs) bool {
	switch {
	case in.uncertain():
		m.is(preview.Undecided, "there may be an instance that its state lacks; the operator looks for it before it "+
			"does anything else")
	case in.facts.Missing():
		m.is(preview.Gone, in.facts.Record.Check.Summary)
	case in.facts.HasInstance():
		return true
	case in.facts.Lock != nil:
		m.is(preview.NotMade, fmt.Sprintf("it is being created (%s), with the inputs of that run", in.facts.Lock))
	default:
		m.is(preview.NotMade, "it has no instance yet")
	}
	return false
}

// fields records the fields of the providerSpec and the labels that differ from those last applied.
func (m *machine) fields(in *inputs) {
	was, is := in.applied, variablesIn(in.variables)
	if was == nil || is == nil {
		return
	}
	m.result.Fields = preview.Compare(decoded(was["provider_spec"]), decoded(is["provider_spec"]))
	labels := preview.Compare(labelsIn(was), labelsIn(is))
	for n := range labels {
		labels[n].Path = "metadata." + labels[n].Path
	}
	m.result.Fields = append(m.result.Fields, labels...)
}

func variablesIn(raw []byte) map[string]json.RawMessage {
	var variables map[string]json.RawMessage
	if json.Unmarshal(raw, &variables) != nil {
		return nil
	}
	return variables
}

func decoded(raw []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

func labelsIn(variables map[string]json.RawMessage) any {
	machine, _ := decoded(variables["machine"]).(map[string]any)
	return map[string]any{"labels": machine["labels"]}
}

// pendingPlans returns the plans of the edit and, if drift is checked, of the unedited Machine.
func (m *machine) pendingPlans(o Options) []pendingPlan {
	if m.inputs == nil {
		return nil
	}
	all := []pendingPlan{o.newPendingPlan(m.inputs, m.inputs.variables, m.planned)}
	if m.present != nil {
		all = append(all, o.newPendingPlan(m.present, m.present.variables, m.drifted))
	}
	return all
}

// withPinned plans with the pinned module if the current one cannot be applied in place.
func (m *machine) withPinned(o Options) []pendingPlan {
	if m.result.Result != preview.NewMachine || m.inputs == nil || m.inputs.pinned == nil {
		return nil
	}
	m.refused, m.inputs = m.result.Why, m.inputs.pinned
	m.result.Module = m.inputs.module.Reference()
	m.note(fmt.Sprintf("It keeps module %s, since the current one cannot be applied in place: %s.", m.result.Module,
		strings.TrimSuffix(m.refused, ".")))
	return []pendingPlan{o.newPendingPlan(m.inputs, m.inputs.variables, m.planned)}
}

// planned records the plan of the edit.
func (m *machine) planned(outcome offline.Outcome) {
	m.result.Resources = nil
	if outcome.Err != nil {
		m.is(preview.Undecided, outcome.Err.Error())
		return
	}
	m.result.Resources = preview.Resources(outcome.Plan)
	broken := outcome.Plan.Broken
	if disruption := outcome.Plan.Report.Disruption(m.inputs.module.Effects(),
		preview.Names(m.result.Resources)); disruption != "" {
		broken = append(slices.Clone(broken), disruption+"; create a new Machine instead, or revert the change")
	}
	checked := lifecycle.CheckUpdate(outcome.Plan.Report, broken, m.inputs.facts.Provisioned)
	switch {
	case checked.Missing != "":
		m.is(preview.Gone, checked.Missing)
	case checked.Refused != "":
		m.is(preview.NewMachine, checked.Refused)
	case checked.Changes:
		m.is(preview.InPlace, "")
	default:
		m.is(preview.Unchanged, "")
	}
}

// drifted records the plan of the unedited Machine.
func (m *machine) drifted(outcome offline.Outcome) {
	switch {
	case outcome.Err != nil:
		m.note("Drift is not known: " + outcome.Err.Error())
	case len(outcome.Plan.Broken) > 0:
		m.note("The current providerSpec of the Machine cannot be applied in place, so its drift is not known: " +
			strings.Join(outcome.Plan.Broken, " "))
	default:
		m.result.Drift = lifecycle.CompareInstance(outcome.Plan.Report, nil).Summary
	}
}
