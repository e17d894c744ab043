package live

import (
	"context"
	"encoding/json"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// inputs hold the facts of a Machine and the inputs that a run would update it with.
type inputs struct {
	facts    *lifecycle.Facts
	decision lifecycle.Decision
	// module is the one that the run would use. moduleNote is the remark about it, if any.
	module     *module.Module
	moduleNote string
	// variables are the module's; applied are those of the last run, without user data, or nil if unknown.
	variables []byte
	applied   map[string]json.RawMessage
	// environment has the credentials, or is nil without them; sensitive lists strings to hide.
	environment map[string]string
	sensitive   []string
	// files are credential files, keyed by the environment variable that carries the path.
	files map[string]string
	// warnings name fields of the providerSpec that have no effect.
	warnings []string
	// pinned are the inputs with the Machine's pinned module, used if the plan with module is refused; nil without one.
	pinned *inputs
}

// inputsOf returns the inputs of an edited Machine; machine and edited may be the same. The error says why the actuator
// would reject the edit (see [desired.IsInvalid]), or what could not be read.
func (o Options) inputsOf(ctx context.Context, reader *desired.Reader, machine,
	edited *machinev1beta1.Machine) (*inputs, error) {
	facts, err := reader.Facts(ctx, machine)
	if err != nil {
		return nil, err
	}
	in := &inputs{facts: facts}
	if facts.Inputs != nil {
		stored, err := desired.ReadInputs(facts.Inputs)
		if err != nil {
			return nil, err
		}
		in.applied = stored.Variables
	}
	choice, err := reader.ChooseUpdate(ctx, edited, facts)
	switch {
	case err != nil:
		return nil, err
	case choice.State == nil && choice.PinnedErr != nil:
		return nil, choice.PinnedErr
	case choice.State == nil:
		return nil, choice.Withheld
	}
	if modules := choice.Modules; modules.Differ() || modules.Pinned == nil {
		in.moduleNote = modules.Status(choice.Withheld).Message
	}
	if choice.Pinned != nil {
		pinned := *in
		in.pinned = &pinned
		if err := in.pinned.take(ctx, o, reader, choice.Pinned); err != nil {
			return nil, err
		}
	}
	return in, in.take(ctx, o, reader, choice.State)
}

// take sets the inputs from a desired state, with the environment of a run if providers are configured.
func (in *inputs) take(ctx context.Context, o Options, reader *desired.Reader, wanted *desired.State) error {
	in.module, in.variables, in.files = wanted.Module, wanted.Inputs.Variables, wanted.Inputs.Files
	in.environment, in.sensitive = wanted.Inputs.Environment, wanted.Inputs.Sensitive
	for _, warning := range wanted.Inputs.Warnings {
		in.warnings = append(in.warnings, warning.String())
	}
	in.decision = lifecycle.Decide(runs.Update, in.facts, lifecycle.Target{
		Fingerprint: wanted.Fingerprint, Lookup: len(wanted.Module.LookupFiles()) > 0, Settle: wanted.Module.Settle(),
	})
	if !o.Refresh || o.Environment == nil {
		return nil
	}
	around, err := reader.Environment(ctx, wanted.Module)
	if err != nil {
		return err
	}
	in.environment, in.sensitive = around.With(in.environment, in.sensitive)
	return nil
}

// uncertain reports whether the actuator would first have to find out whether the instance exists.
func (in *inputs) uncertain() bool {
	d := in.decision
	return d.Action == lifecycle.ActionForeign || d.Action == lifecycle.ActionUnresolved ||
		d.Action == lifecycle.ActionRequeueAfter || d.Lookup
}
