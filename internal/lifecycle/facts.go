package lifecycle

import (
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// InputsAttachment is the attachment of a state that holds the inputs which were applied last, packed.
const InputsAttachment = "inputs"

// stateOnlyType is the type of resources that are made in the state only.
const stateOnlyType = "terraform_data"

// Facts are what a decision is made from.
type Facts struct {
	// Gone says that there is no Machine of this UID any more, Deleting that it is being deleted.
	Gone, Deleting bool
	// Stored says that there is a state Secret. Without one, Version, Record, State, Raw, Lock and Inputs are zero.
	Stored bool
	// Version is the resource version of that Secret. ReadAhead says that it was read with all others when this process began to lead.
	Version   string
	ReadAhead bool
	Record    record.Record
	State     *statefile.State
	// Raw is the state as it is stored, Lock its lock; nil for none.
	Raw  []byte
	Lock *state.Lock
	// Run is what the pool holds for the Machine; nil for nothing, and when a run itself decides.
	Run *runs.Status
	// Provisioned says that the Machine has once carried an instance's outputs.
	Provisioned bool
	// Witness is what the Machine itself says of an instance; nil for nothing. RestoredFrom is the UID of the Machine that it was copied from.
	Witness      *record.Witness
	RestoredFrom string
	// Confirmed is the abandoned run of which a person has confirmed that it left nothing.
	Confirmed string
	// Adoption is what is asked to be done about an instance that something else has made.
	Adoption AdoptionRequest
	// Inputs are those that were applied last, packed; nil when none are stored.
	Inputs []byte
	// Orphan is what the state says of itself as one whose Machine is gone; zero unless it is.
	Orphan record.Orphan
	// Drift is what the Machine asks to be done about drift.
	Drift DriftSetting
	// CheckRequest is what the Machine says of a drift check that is requested; empty for nothing.
	CheckRequest string
}

// NewFacts returns the facts about a Machine; snapshot is nil where there is no state. Run and Gone are left to the caller.
func NewFacts(machine *machinev1beta1.Machine, snapshot *state.Snapshot) (*Facts, error) {
	f := &Facts{
		Deleting: !machine.DeletionTimestamp.IsZero(), Drift: DriftOf(machine), Witness: record.WitnessOf(machine), RestoredFrom: string(record.RestoredFrom(machine)),
		CheckRequest: machine.Annotations[record.CheckDriftAnnotation],
		Confirmed:    machine.Annotations[record.NoInstanceAnnotation], Adoption: adoptionRequest(machine),
		Provisioned: machine.Spec.ProviderID != nil && *machine.Spec.ProviderID != "" || len(machine.Status.Addresses) > 0,
	}
	if snapshot == nil {
		return f, nil
	}
	f.Stored, f.Version, f.ReadAhead = true, snapshot.ResourceVersion, snapshot.ReadAhead
	f.Inputs, f.Raw, f.Lock = snapshot.Attachments[InputsAttachment], snapshot.Raw, snapshot.Lock
	var err error
	if f.Record, err = record.Read(snapshot.Meta); err != nil {
		return nil, fmt.Errorf("reading the Machine's state %s: %w", snapshot.Key, err)
	}
	if f.State, err = snapshot.State(); err != nil {
		return nil, fmt.Errorf("reading the Machine's state %s: %w", snapshot.Key, err)
	}
	return f, nil
}

// HasResources reports whether the state has any resource: only a destroy may remove it.
func (f *Facts) HasResources() bool { return f.State != nil && len(f.State.Managed()) > 0 }

// HasInstance reports whether the state has the instance, whole.
func (f *Facts) HasInstance() bool {
	if f.State == nil {
		return false
	}
	for _, resource := range f.State.Managed() {
		if isInstance(resource) {
			return resource.Instances > resource.Tainted+resource.Deposed
		}
	}
	return false
}

// isInstance reports whether a resource is the one that the module contract calls the instance.
func isInstance(resource statefile.Resource) bool {
	return resource.Module == "" && resource.Name == "this"
}

// Exists reports whether the state has the instance, and no check has found it missing.
func (f *Facts) Exists() bool {
	return f.HasInstance() && !f.Missing()
}

// Unrecorded reports whether an instance may exist that the state lacks: a run began that may have made it and has not settled, or the
// Machine says that there was one and its state is gone.
func (f *Facts) Unrecorded() bool {
	switch {
	case f.HasInstance() || f.Destroyed():
		return false
	case f.Adopted():
		return true
	case f.Record.Intent != nil:
		return f.Record.Intent.AbandonedRun() != ""
	}
	return !f.Stored && f.Witness != nil
}

// AbandonedRun names the run that may have made an instance which the state lacks.
func (f *Facts) AbandonedRun() string {
	switch {
	case f.Record.Intent != nil && !f.Adopted():
		return f.Record.Intent.AbandonedRun()
	case f.Witness != nil:
		return f.Witness.Run
	}
	return ""
}

// ConfirmedAbsent reports whether a person has confirmed that the abandoned run left nothing.
func (f *Facts) ConfirmedAbsent() bool { return f.Confirmed != "" && f.Confirmed == f.AbandonedRun() }

// Bound reports whether the Machine is bound to the place that is recorded: something of it is there, or may be. Where a person has said
// that an abandoned run left nothing, what that run did not finish is not there.
func (f *Facts) Bound() bool {
	confirmed := f.ConfirmedAbsent()
	if f.Unrecorded() && !confirmed {
		return true
	}
	return f.State != nil && slices.ContainsFunc(f.State.Managed(), func(r statefile.Resource) bool {
		return r.Type != stateOnlyType && (!confirmed || r.Instances > r.Tainted+r.Deposed)
	})
}

// Destroyed reports whether the instance was proven to be gone by a destroy.
func (f *Facts) Destroyed() bool {
	return f.Witness != nil && f.Witness.Destroyed != nil ||
		!f.Stored && f.Run != nil && f.Run.Operation == runs.Destroy && f.Run.Phase == runs.Succeeded
}

// Foreign reports whether the Machine has, or is to get, an instance that something else has made and that was not adopted. What a plan of its adoption, or
// one that was refused, has recorded is no state.
func (f *Facts) Foreign() bool {
	if !f.Provisioned && !f.Adoption.named() || f.Witness != nil || f.Destroyed() {
		return false
	}
	return !f.Stored || f.Record.AdoptionPlan != nil && !f.HasResources()
}

// emptyHead reports whether what is stored is no more than what a plan of an adoption has left.
func (f *Facts) emptyHead() bool { return f.Record.OnlyPlanned() && !f.HasResources() }

// Adopted reports whether something else has made the instance, which was adopted, or is being adopted.
func (f *Facts) Adopted() bool { return f.Witness != nil && f.Witness.Adopted }

// Since returns, for people, since when there is an instance.
func (f *Facts) Since() string {
	if f.Witness == nil {
		return "some time"
	}
	return f.Witness.Since.UTC().Format(time.RFC3339)
}

// Missing reports whether a check has found the instance missing.
func (f *Facts) Missing() bool {
	return f.Record.Check != nil && f.Record.Check.Result == record.DriftMissing
}

// Settled reports whether the desired state of a fingerprint was applied and nothing has begun since.
func (f *Facts) Settled(fingerprint string) bool {
	return f.Record.Intent == nil && f.Record.Fingerprint == fingerprint
}

// Active reports whether a run is queued or running.
func (f *Facts) Active() bool { return f.Run != nil && f.Run.Active() }

// PinnedModule returns the reference of the module that made what the Machine has, or may have; empty while there is nothing.
func (f *Facts) PinnedModule() string {
	if f.Record.Intent == nil && !f.HasResources() {
		return ""
	}
	return f.Record.Module
}

// Identity returns the UID that the Machine's instance was made with: what the module gets as var.machine.uid, and what names, tags and
// lookups of the instance have. It is the Machine's own, unless the state was made for a Machine with another UID and given to this one.
func (f *Facts) Identity(own types.UID) types.UID {
	switch {
	case f.Record.IdentityUID != "":
		return f.Record.IdentityUID
	case f.Witness != nil && f.Witness.IdentityUID != "":
		return f.Witness.IdentityUID
	}
	return own
}
