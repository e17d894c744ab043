package lifecycle

import (
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// InputsAttachment names the attachment of a state that holds the inputs applied last, packed.
const InputsAttachment = "inputs"

// stateOnlyType is the type of resources that exist in the state only.
const stateOnlyType = "terraform_data"

// Facts are the input of a decision.
type Facts struct {
	// Gone reports that no Machine has this UID any more; Deleting that it is being deleted.
	Gone, Deleting bool
	// Stored reports whether a state Secret exists. Without one, Version, Record, State, Raw, Lock
	// and Inputs are zero.
	Stored bool
	// Version is the Secret's resource version.
	Version string
	Record  record.Record
	State   *statefile.State
	// Raw is the stored state, Lock its lock; nil for none.
	Raw  []byte
	Lock *state.Lock
	// Run is the pool's run for the Machine. It is nil if there is none, and while a run itself
	// decides.
	Run *runs.Status
	// Provisioned reports whether the Machine has ever carried an instance's outputs.
	Provisioned bool
	// Inherits reports whether an instance of the Machine's name may exist that this operator did
	// not create. The module can search for it.
	Inherits bool
	// Witness is the Machine's own record of its instance, or nil. RestoredFrom is the UID of the
	// Machine that it was copied from.
	Witness      *record.Witness
	RestoredFrom string
	// Confirmed is the abandoned run that left nothing behind, as a person has confirmed.
	Confirmed string
	// Adoption is the Machine's request to adopt or release an instance.
	Adoption AdoptionRequest
	// Inputs are the inputs applied last, packed; nil if none are stored.
	Inputs []byte
	// Orphan is the orphan record of a state whose Machine is gone, or zero.
	Orphan record.Orphan
	Drift  DriftSetting
	// CheckRequest is the Machine's request for a drift check, or empty.
	CheckRequest string
}

// NewFacts returns the facts about a Machine. snapshot is nil without a state. by is the
// installation that signs annotations; without it, no annotation is trusted. The caller sets Run
// and Gone.
func NewFacts(machine *machinev1beta1.Machine, snapshot *state.Snapshot,
	by *installation.Installation) (*Facts, error) {
	f := &Facts{
		Deleting: !machine.DeletionTimestamp.IsZero(), Drift: DriftOf(machine), Witness: record.WitnessOf(machine, by),
		RestoredFrom: string(record.RestoredFrom(machine)),
		CheckRequest: record.CheckRequest(machine.Annotations),
		Confirmed:    machine.Annotations[record.NoInstanceAnnotation], Adoption: adoptionRequest(machine),
		Provisioned: machine.Spec.ProviderID != nil && *machine.Spec.ProviderID != "" || len(machine.Status.Addresses) > 0,
	}
	if snapshot == nil {
		return f, nil
	}
	f.Stored, f.Version = true, snapshot.ResourceVersion
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

// Believe drops times that lie in the future by the reader's clock.
func (f *Facts) Believe(now time.Time) {
	f.Record = f.Record.Believed(now)
	if asked := &f.Adoption; asked.Misread == "" && asked.Since.After(now.Add(record.MaxSkew)) {
		asked.Misread = fmt.Sprintf("annotation %s is %s, which is in the future; set it to the current time",
			AdoptionRequestedAnnotation, asked.Since.UTC().Format(time.RFC3339))
	}
}

// HasResources reports whether the state has any resource. Only a destroy may remove such a state.
func (f *Facts) HasResources() bool { return f.State != nil && len(f.State.Managed()) > 0 }

// HasInstance reports whether the state has the complete instance.
func (f *Facts) HasInstance() bool {
	instance := f.instance()
	return instance.Instances > instance.Tainted+instance.Deposed
}

// HalfMade reports whether the create was interrupted before the engine saw the instance ready. The
// engine has tainted the instance and would replace it. The Machine never had an instance.
func (f *Facts) HalfMade() bool {
	instance := f.instance()
	return instance.Instances > instance.Deposed && !f.HasInstance() && f.State.Format == "" && !f.HadInstance()
}

// HadInstance reports whether the Machine has, or once had, a complete instance, as far as is recorded.
func (f *Facts) HadInstance() bool {
	return f.Provisioned || f.Record.Fingerprint != "" || f.Adopted() || f.Destroyed()
}

// CutShort reports whether a create was interrupted. It resumes with the inputs of that create.
func (f *Facts) CutShort() bool { return f.Unrecorded() || f.HalfMade() }

// instance returns the instance's resource in the state, or zero.
func (f *Facts) instance() statefile.Resource {
	if f.State != nil {
		for _, resource := range f.State.Managed() {
			if isInstance(resource) {
				return resource
			}
		}
	}
	return statefile.Resource{}
}

// SetTainted returns the state with the instance marked tainted or not.
func SetTainted(raw []byte, tainted bool) ([]byte, error) {
	return statefile.SetTainted(raw, tainted, isInstance)
}

// isInstance reports whether a resource is the instance of the module contract.
func isInstance(resource statefile.Resource) bool {
	return resource.Module == "" && resource.Name == "this"
}

// Exists reports whether the state has the instance and no check has found it missing.
func (f *Facts) Exists() bool {
	return f.HasInstance() && !f.Missing()
}

// BeingMade reports whether a run is creating the Machine's first instance. That run may still
// discard what the state has of it.
func (f *Facts) BeingMade() bool {
	return f.Active() && f.Run.Operation == runs.Create && !f.Provisioned
}

// Unproven reports whether the state has an instance that no run has completed yet. A run may still
// discard it.
func (f *Facts) Unproven() bool { return f.Record.Intent != nil && !f.HadInstance() }

// Unrecorded reports whether an instance may exist that the state lacks. Either a run that may have
// created it has not settled, or the Machine had an instance and its state is gone.
func (f *Facts) Unrecorded() bool {
	switch {
	case f.HasInstance() || f.HalfMade() || f.Destroyed():
		return false
	case f.Adopted():
		return true
	case f.Record.Intent != nil:
		return f.Record.Intent.AbandonedRun() != ""
	}
	return !f.Stored && f.Witness != nil
}

// AbandonedRun returns the run that may have created an instance that the state lacks. A create that
// finds nothing of an earlier run goes on to create an instance. If it still holds the lock, it died
// and may have created one.
func (f *Facts) AbandonedRun() string {
	switch intent := f.Record.Intent; {
	case intent != nil && !f.Adopted() && intent.Operation == runs.Create && f.Lock != nil && f.Lock.Run == intent.Run:
		return intent.Run
	case f.Record.Intent != nil && !f.Adopted():
		return f.Record.Intent.AbandonedRun()
	case f.Witness != nil:
		return f.Witness.Run
	}
	return ""
}

// ConfirmedAbsent reports whether a person has confirmed that the abandoned run left nothing.
func (f *Facts) ConfirmedAbsent() bool { return f.Confirmed != "" && f.Confirmed == f.AbandonedRun() }

// Bound reports whether the Machine is bound to its recorded place because resources exist there,
// or may. If a person has confirmed that the abandoned run left nothing, its unfinished resources
// do not count.
func (f *Facts) Bound() bool {
	confirmed := f.ConfirmedAbsent()
	if f.Unrecorded() && !confirmed {
		return true
	}
	return f.State != nil && slices.ContainsFunc(f.State.Managed(), func(r statefile.Resource) bool {
		return r.Type != stateOnlyType && (!confirmed || r.Instances > r.Tainted+r.Deposed)
	})
}

// Destroyed reports whether a destroy has proven that the instance is gone.
func (f *Facts) Destroyed() bool {
	return f.Witness != nil && f.Witness.Destroyed != nil ||
		!f.Stored && f.Run != nil && f.Run.Operation == runs.Destroy && f.Run.Phase == runs.Succeeded
}

// Foreign reports whether the Machine has, or is to adopt, an instance that this operator did not
// create and has not adopted. The record of an adoption plan, or of a refused one, is not a state.
func (f *Facts) Foreign() bool {
	if !f.Provisioned && !f.Adoption.named() && !f.MayInherit() || f.Witness != nil || f.Destroyed() {
		return false
	}
	return !f.Stored || f.Record.AdoptionPlan != nil && !f.HasResources()
}

// MayInherit reports whether an instance of the Machine's name may exist that this operator did not
// create: no search has ruled it out.
func (f *Facts) MayInherit() bool {
	return f.Inherits && (f.Record.AdoptionPlan == nil || f.Record.AdoptionPlan.Absent.IsZero())
}

// emptyHead reports whether the stored state holds nothing but the record of an adoption plan.
func (f *Facts) emptyHead() bool { return f.Record.OnlyPlanned() && !f.HasResources() }

// Adopted reports whether the instance was adopted or is being adopted.
func (f *Facts) Adopted() bool { return f.Witness != nil && f.Witness.Adopted }

// Since returns, for people, since when the instance exists.
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

// Settled reports whether the desired state of a fingerprint is applied and no run has begun since.
func (f *Facts) Settled(fingerprint string) bool {
	return f.Record.Intent == nil && f.Record.Fingerprint == fingerprint
}

// Active reports whether a run is queued or running.
func (f *Facts) Active() bool { return f.Run != nil && f.Run.Active() }

// PinnedModule returns the reference of the module that created the Machine's resources, or may
// have; empty if there are none.
func (f *Facts) PinnedModule() string {
	if f.Record.Intent == nil && !f.HasResources() {
		return ""
	}
	return f.Record.Module
}

// Identity returns the UID that the instance was created with. The module gets it as
// var.machine.uid, and the instance's name, tags and lookups use it. It is the Machine's own UID,
// unless the state was created for another Machine and handed to this one.
func (f *Facts) Identity(own types.UID) types.UID {
	switch {
	case f.Record.IdentityUID != "":
		return f.Record.IdentityUID
	case f.Witness != nil && f.Witness.IdentityUID != "":
		return f.Witness.IdentityUID
	}
	return own
}
