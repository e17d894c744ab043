package lifecycle

import (
	"encoding/json"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// OfAnother returns the evidence that the state belongs to another Machine, or "". The evidence is
// the UID that a resource carries. An adopted instance need not carry the Machine's UID, so its
// provider ID is compared instead.
func (f *Facts) OfAnother(identities module.Identities, own types.UID) (why string, err error) {
	if !f.HasResources() {
		return "", nil
	}
	if f.Adopted() {
		has, err := f.Outputs()
		if err != nil || f.Witness.ProviderID == "" || has.ProviderID == "" || has.ProviderID == f.Witness.ProviderID {
			return "", nil //nolint:nilerr // unreadable outputs prove nothing and are reported elsewhere
		}
		return fmt.Sprintf("the state has instance %s, but the Machine adopted %s", has.ProviderID, f.Witness.ProviderID), nil
	}
	objects, err := f.Objects()
	if err != nil {
		return "", err
	}
	for address, object := range objects {
		if owner, _ := identities.OwnerOf(address, object); owner.MachineUID != "" && owner.MachineUID != string(f.Identity(own)) {
			return (&module.ForeignError{Address: address, Owner: owner.MachineUID}).Error(), nil
		}
	}
	return "", nil
}

// Objects returns the attributes of the state's resources by address; none without a state.
func (f *Facts) Objects() (map[string]json.RawMessage, error) {
	if len(f.Raw) == 0 {
		return nil, nil
	}
	return statefile.Objects(f.Raw, f.State)
}

// RenewedWitness returns a new witness for a Machine whose state has an instance but whose signed
// witness is missing. It returns nil if the witness is valid or a run is about to change it. The
// old one may come from an earlier version or another key, from an import, or from an edit. The
// content is taken from the state.
func (f *Facts) RenewedWitness(machine *machinev1beta1.Machine, now time.Time) *record.Witness {
	if !f.HasInstance() || f.Witness != nil && !f.Witness.Unsigned || f.Active() ||
		f.Adoption.Adoption == AdoptionRelease {
		return nil
	}
	w := &record.Witness{Run: "renewed", Since: now.UTC(), Place: f.Record.Place, IdentityUID: f.Record.IdentityUID}
	if f.Witness != nil {
		w.Run, w.Since = f.Witness.Run, f.Witness.Since
	}
	if has, err := f.Outputs(); err == nil && record.ClaimsAdoption(machine) {
		w.Adopted, w.ProviderID = true, has.ProviderID
	}
	return w
}
