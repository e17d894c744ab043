package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/iac"
	"github.com/machine-iac/machine-iac-operator/internal/plan/diff"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

// machine is a Machine that exists, its edit, and what comes to be known of it.
type machine struct {
	existing, edited *machinev1beta1.Machine
	told             *preview.LiveMachine
	// prospect is what would be planned for the edit, present what is for the Machine as it is; nil for nothing.
	prospect, present *iac.Prospect
	// refused says why the plan with the prospect's module was not let through where there is another to plan with.
	refused string
}

func newMachine(existing, wanted *machinev1beta1.Machine) *machine {
	return &machine{
		existing: existing, edited: edit(existing, wanted),
		told: &preview.LiveMachine{Name: existing.Name, Phase: ptr.Deref(existing.Status.Phase, "")},
	}
}

func (m *machine) is(verdict preview.EditResult, why string) {
	m.told.Verdict, m.told.Why = verdict, why
}

func (m *machine) note(text string) {
	if text != "" {
		m.told.Notes = append(m.told.Notes, text)
	}
}

// foresee asks what the actuator would do about the edit. Where there is nothing to plan, that is the verdict.
func (m *machine) foresee(ctx context.Context, outlook *iac.Outlook, o Options) {
	switch {
	case m.existing.DeletionTimestamp != nil:
		m.is(preview.Gone, "it is being deleted")
		return
	case m.told.Phase == machinev1beta1.PhaseFailed:
		m.is(preview.Gone, "it has failed, and nothing is done any more for a Machine that has; delete it")
		return
	}
	p, err := o.prospect(ctx, outlook, m.existing, m.edited)
	switch {
	case actuators.IsInvalidConfiguration(err):
		m.is(preview.Refused, iac.Message(err))
		return
	case err != nil:
		m.is(preview.Undecided, iac.Message(err))
		return
	}
	m.told.Module = p.Module.Reference()
	m.note(p.ModuleNote)
	for _, warning := range p.Warnings {
		m.note("Warning: " + warning)
	}
	m.fields(p)
	if !m.stands(p) {
		return
	}
	m.prospect = p
	if p.Lock != nil {
		m.note(fmt.Sprintf("A run has its state now (%s), so this is told from what was saved last.", p.Lock))
	}
	if o.Refresh {
		if m.present, err = o.prospect(ctx, outlook, m.existing, m.existing); err != nil {
			m.note("Drift was not looked for: " + iac.Message(err))
		}
	}
}

// stands tells whether there is an instance to plan changes of.
func (m *machine) stands(p *iac.Prospect) bool {
	switch {
	case p.Lost:
		m.is(preview.Undecided, "there may be an instance that its state lacks; the operator looks for it before it does anything else")
	case p.Missing != "":
		m.is(preview.Gone, p.Missing)
	case p.Instance:
		return true
	case p.Lock != nil:
		m.is(preview.NotMade, fmt.Sprintf("it is being made (%s), with what it asked for then", p.Lock))
	default:
		m.is(preview.NotMade, "it has no instance yet")
	}
	return false
}

// fields notes what of the providerSpec and the labels differs from what the instance was brought to last.
func (m *machine) fields(p *iac.Prospect) {
	was, is := p.Was, variablesIn(p.Variables)
	if was == nil || is == nil {
		return
	}
	m.told.Fields = diff.Compare(decoded(was["provider_spec"]), decoded(is["provider_spec"]))
	labels := diff.Compare(labelsIn(was), labelsIn(is))
	for n := range labels {
		labels[n].Path = "metadata." + labels[n].Path
	}
	m.told.Fields = append(m.told.Fields, labels...)
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

// questions are what is to be planned of the Machine: its edit, and what it is now where drift is looked for.
func (m *machine) questions(o Options) []question {
	if m.prospect == nil {
		return nil
	}
	all := []question{o.newQuestion(m.prospect, m.prospect.Variables, m.answered)}
	if m.present != nil {
		all = append(all, o.newQuestion(m.present, m.present.Variables, m.drifted))
	}
	return all
}

// again plans with the Machine's own module what the current one would not do in place.
func (m *machine) again(o Options) []question {
	if m.told.Verdict != preview.NewMachine || m.prospect.Instead == nil {
		return nil
	}
	m.refused, m.prospect = m.told.Why, m.prospect.Instead
	m.told.Module = m.prospect.Module.Reference()
	m.note(fmt.Sprintf("It keeps module %s, since the current one is not to be had in place: %s.", m.told.Module, strings.TrimSuffix(m.refused, ".")))
	return []question{o.newQuestion(m.prospect, m.prospect.Variables, m.answered)}
}

// answered takes the plan of the edit.
func (m *machine) answered(outcome offline.Outcome) {
	m.told.Resources = nil
	if outcome.Err != nil {
		m.is(preview.Undecided, outcome.Err.Error())
		return
	}
	m.told.Resources = diff.Resources(outcome.Plan)
	ruling := iac.RuleUpdate(outcome.Plan.Report, outcome.Plan.Broken, m.prospect.Provisioned)
	switch {
	case ruling.Missing != "":
		m.is(preview.Gone, ruling.Missing)
	case ruling.Refused != "":
		m.is(preview.NewMachine, ruling.Refused)
	case ruling.Changes:
		m.is(preview.InPlace, "")
	default:
		m.is(preview.Unchanged, "")
	}
}

// drifted takes the plan of the Machine as it is.
func (m *machine) drifted(outcome offline.Outcome) {
	switch {
	case outcome.Err != nil:
		m.note("Drift was not told: " + outcome.Err.Error())
	case len(outcome.Plan.Broken) > 0:
		m.note("What the Machine asks for now cannot be had in place already, so that drift was not told: " + strings.Join(outcome.Plan.Broken, " "))
	default:
		m.told.Drift = iac.Drift(outcome.Plan.Report)
	}
}
