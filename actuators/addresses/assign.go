package addresses

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// Retry is the delay before unbound claims are checked again.
const Retry = 10 * time.Second

// PoolsOf returns the pools that a Machine takes addresses from. served is the module that serves
// it, if any. Errors in the providerSpec are reported when it is rendered.
func PoolsOf(machine *machinev1beta1.Machine, served *module.Module, unserved error) []render.AddressPool {
	if unserved != nil || served.Spec().AddressClaims == nil {
		return nil
	}
	providerSpec, err := render.ProviderSpec(machine, served)
	if err != nil {
		return nil
	}
	return render.AddressPools(served.Spec().AddressClaims, providerSpec)
}

// Standing is the state of a Machine's claims.
type Standing struct {
	// Outstanding counts the claims without an address, Missing the pools from which the Machine
	// has no address.
	Outstanding, Missing int
	// Err says why the standing is unknown, or is nil.
	Err error
}

// Assign creates a Machine's claims and writes the addresses on it once every pool has provided
// one. It keeps the Machine's addresses unless anew is set.
func (c *Claims) Assign(ctx context.Context, machine *machinev1beta1.Machine, pools []render.AddressPool,
	anew bool) Standing {
	bound, err := c.Ensure(ctx, machine, pools)
	if err != nil {
		return Standing{Err: err}
	}
	kept, err := render.ParseAddresses(machine.Annotations[render.AddressesAnnotation])
	if err != nil || anew {
		kept = nil
	}
	given, missing := chosen(pools, kept, bound)
	standing := Standing{Outstanding: len(pools) - len(bound), Missing: missing}
	if missing == 0 {
		standing.Err = c.write(ctx, machine, given)
	}
	return standing
}

// chosen returns the address for each pool: the Machine's current one, or else the one bound to its
// claim. missing counts the pools with neither.
func chosen(pools []render.AddressPool, kept, bound []render.PoolAddress) (given []render.PoolAddress, missing int) {
	for _, pool := range pools {
		one, found := render.FindAddress(kept, pool)
		if !found {
			one, found = render.FindAddress(bound, pool)
		}
		if !found {
			missing++
			continue
		}
		given = append(given, one)
	}
	return given, missing
}

// write writes the addresses on the Machine, where a run reads them. It needs no resourceVersion,
// because only this operator writes the annotation.
func (c *Claims) write(ctx context.Context, machine *machinev1beta1.Machine, given []render.PoolAddress) error {
	text, err := render.FormatAddresses(given)
	if err != nil || machine.Annotations[render.AddressesAnnotation] == text {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": machine.UID, "annotations": map[string]any{render.AddressesAnnotation: text},
	}})
	if err == nil {
		err = c.client.Patch(ctx, machine.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
	}
	if err != nil {
		return fmt.Errorf("writing annotation %s on the Machine: %w", render.AddressesAnnotation, err)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, render.AddressesAnnotation, text)
	return nil
}

// Publish sets the condition about a Machine's claims, in the words of machine-api-operator.
func (s Standing) Publish(conditions *[]metav1.Condition, now time.Time) {
	condition := metav1.Condition{
		Type: string(machinev1beta1.IPAddressClaimedCondition), Status: metav1.ConditionTrue,
		Reason:  machinev1beta1.IPAddressClaimedReason,
		Message: "All IP address claims are bound", LastTransitionTime: metav1.NewTime(now),
	}
	if s.Outstanding > 0 || s.Err != nil {
		condition.Status, condition.Reason = metav1.ConditionFalse, machinev1beta1.WaitingForIPAddressReason
		condition.Message = fmt.Sprintf("Waiting on %d IP address claims to be bound", s.Outstanding)
	}
	if s.Err != nil {
		condition.Message = s.Err.Error()
	}
	meta.SetStatusCondition(conditions, condition)
}

// MayHave reports whether a Machine with these conditions may have claims, even if its providerSpec
// no longer names pools.
func MayHave(machine *machinev1beta1.Machine, conditions []metav1.Condition) bool {
	return machine.Annotations[render.AddressesAnnotation] != "" ||
		meta.FindStatusCondition(conditions, string(machinev1beta1.IPAddressClaimedCondition)) != nil
}

// Waiting reports whether these conditions say that a claim is unbound. Nothing wakes a Machine
// when a claim is bound.
func Waiting(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionFalse(conditions, string(machinev1beta1.IPAddressClaimedCondition))
}
