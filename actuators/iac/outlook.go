package iac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// reader reads what is decided upon. It writes nothing.
type reader struct {
	client  client.Reader
	catalog *module.Catalog
	modules *store.Store
	updates ModuleUpdates
	store   *state.Store
	// facts are what is known of the cluster, around is how its infrastructure is reached; nil for as usual.
	facts  module.ClusterValues
	around Surroundings
	// blind says that credentials are not read.
	blind bool
}

// OutlookOptions are what an Outlook works with. All must be set but those that say what they are otherwise.
type OutlookOptions struct {
	// Client reads the API server itself. Nothing is written with it.
	Client  client.Client
	Catalog *module.Catalog
	// Facts are what is known of the cluster, for the defaults of fields that a providerSpec lacks.
	Facts module.ClusterValues
	// ModuleUpdates is what the operator does about Machines whose module has changed; they are held when empty.
	ModuleUpdates ModuleUpdates
	// Credentials has the Secrets with credentials read.
	Credentials bool
}

// Outlook tells what the actuator would do about a Machine, for whoever wants to know beforehand. It takes no lock and writes nothing.
type Outlook struct{ reader reader }

// NewOutlook makes an Outlook.
func NewOutlook(options OutlookOptions) (*Outlook, error) {
	if options.ModuleUpdates == "" {
		options.ModuleUpdates = ModuleUpdatesHold
	}
	if err := options.ModuleUpdates.check(); err != nil {
		return nil, err
	}
	return &Outlook{reader{
		client: options.Client, catalog: options.Catalog, facts: options.Facts, updates: options.ModuleUpdates, blind: !options.Credentials,
		modules: store.New(options.Client, store.Options{}), store: state.New(options.Client, state.Options{}),
	}}, nil
}

// Prospect is what there is of a Machine, and what a run that updates it would be given.
type Prospect struct {
	// Raw is the state, nil for none; Instance says that it has the instance, whole, and Provisioned that the Machine has once had one.
	Raw                   []byte
	Instance, Provisioned bool
	// Lost says that there may be an instance that the state lacks. Missing is what the last drift check said of one that is gone.
	Lost    bool
	Missing string
	// Lock is that of the run which has the state; nil for none.
	Lock *state.Lock
	// Module is the one that a run would use, Own the reference of the one that the instance was made with, where that is another.
	Module *module.Module
	Own    string
	// ModuleNote says what is to be said of the Machine's module; empty for nothing.
	ModuleNote string
	// Variables are the module's variables, Was those that the instance was brought to last, without user data; nil when not known.
	Variables []byte
	Was       map[string]json.RawMessage
	// Environment has the credentials, and is nil without; Sensitive is what nothing may show.
	Environment map[string]string
	Sensitive   []string
	// Files are credentials in files, by the environment variables that carry their paths.
	Files map[string]string
	// Warnings are about fields of the providerSpec that have no effect.
	Warnings []string
	// Instead is what a run is given where the plan with Module is refused: the Machine's own module; nil for none.
	Instead *Prospect
}

// Of answers the prospect of a Machine that is edited; both may be the same. An error says why the actuator would not take the edit, or what
// could not be read; see [actuators.IsInvalidConfiguration].
func (o *Outlook) Of(ctx context.Context, machine, edited *machinev1beta1.Machine) (*Prospect, error) {
	f, err := o.reader.read(ctx, machine)
	if err != nil {
		return nil, err
	}
	p := &Prospect{Raw: f.raw, Instance: f.instance(), Provisioned: f.provisioned, Lost: f.lost() || f.foreign(), Lock: f.lock}
	if f.record.Check != nil && f.record.Check.Verdict == verdictMissing {
		p.Missing = f.record.Check.Summary
	}
	if f.inputs != nil {
		kept, err := readRemembered(f.inputs)
		if err != nil {
			return nil, err
		}
		p.Was = kept.Variables
	}
	c, err := o.reader.choices(ctx, edited, f)
	if err != nil {
		return nil, err
	}
	found := o.reader.prospects(ctx, edited, c)
	wanted, withheld := found.choose(f)
	if wanted == nil {
		return nil, firstOf(found.ownErr, withheld)
	}
	p.take(wanted)
	if wanted == found.next && found.own != nil {
		instead := *p
		instead.take(found.own)
		p.Instead = &instead
	}
	if condition := moduleCondition(c, withheld); c.other() || c.own == nil {
		p.Own, p.ModuleNote = c.bound, condition.Message
	}
	return p, nil
}

// firstOf answers the first error that is one.
func firstOf(err error, withheld *actuators.MachineError) error {
	if err == nil && withheld != nil {
		return withheld
	}
	return err
}

func (p *Prospect) take(wanted *desired) {
	p.Module, p.Variables, p.Environment, p.Sensitive = wanted.module, wanted.inputs.Variables, wanted.inputs.Environment, wanted.inputs.Sensitive
	p.Files = wanted.inputs.Files
	for _, warning := range wanted.inputs.Warnings {
		p.Warnings = append(p.Warnings, warning.String())
	}
}

// desireBlindly is desire without credentials.
func (r *reader) desireBlindly(ctx context.Context, machine *machinev1beta1.Machine, served *module.Module, ref render.Ref) (*desired, error) {
	userData, err := r.secret(ctx, machine, ref.Name, "user data")
	if err != nil {
		return nil, late(runs.Update, err)
	}
	input := render.Input{
		Machine: machine, ClusterID: machine.Labels[machinev1beta1.MachineClusterIDLabel], Module: served, UserData: data(userData)[userDataKey(served)],
	}
	inputs := &render.Inputs{}
	if inputs.Warnings, err = render.Check(input); err == nil {
		inputs.Variables, err = render.Variables(input)
	}
	if err != nil {
		return nil, invalid(err)
	}
	if len(input.UserData) > 0 {
		inputs.Sensitive = []string{string(input.UserData)}
	}
	return &desired{module: served, inputs: inputs}, nil
}

// Message says for people why an edit is not taken; it is what the Machine would show.
func Message(err error) string {
	if told, ok := errors.AsType[*actuators.MachineError](err); ok {
		return told.Message
	}
	return fmt.Sprint(err)
}
