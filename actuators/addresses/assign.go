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
	"github.com/machine-iac/machine-iac-operator/internal/module/addresses"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// Retry is how soon claims are looked at again that have no address yet.
const Retry = 10 * time.Second

// PoolsOf returns the pools that a Machine takes addresses from, with the module that serves it, if there is one. What is wrong with its providerSpec
// is reported when it is rendered.
func PoolsOf(machine *machinev1beta1.Machine, served *module.Module, unserved error) []addresses.Pool {
	if unserved != nil || served.Spec().AddressClaims == nil {
		return nil
	}
	providerSpec, err := render.ProviderSpec(machine, served)
	if err != nil {
		return nil
	}
	return addresses.Pools(served.Spec().AddressClaims, providerSpec)
}

// Standing is how a Machine stands with its pools.
type Standing struct {
	// Outstanding counts the claims that have no address, Missing the pools of which the Machine has none.
	Outstanding, Missing int
	// Err says why it is not known; nil otherwise.
	Err error
}

// Assign makes the claims of a Machine and writes the addresses on it, once there is one from each pool. Those that it has already stay, unless they
// are chosen anew.
func (c *Claims) Assign(ctx context.Context, machine *machinev1beta1.Machine, pools []addresses.Pool, anew bool) Standing {
	bound, err := c.Ensure(ctx, machine, pools)
	if err != nil {
		return Standing{Err: err}
	}
	kept, err := addresses.Parse(machine.Annotations[addresses.Annotation])
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

// chosen returns the address of each pool: the one that the Machine has already, else the one that its claim is bound to. It counts the pools that
// have neither.
func chosen(pools []addresses.Pool, kept, bound []addresses.Address) (given []addresses.Address, missing int) {
	for _, pool := range pools {
		one, found := addresses.Find(kept, pool)
		if !found {
			one, found = addresses.Find(bound, pool)
		}
		if !found {
			missing++
			continue
		}
		given = append(given, one)
	}
	return given, missing
}

// write writes the addresses on the Machine, where a run reads them. It needs no resourceVersion: the annotation is this operator's alone.
func (c *Claims) write(ctx context.Context, machine *machinev1beta1.Machine, given []addresses.Address) error {
	text, err := addresses.Format(given)
	if err != nil || machine.Annotations[addresses.Annotation] == text {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": machine.UID, "annotations": map[string]any{addresses.Annotation: text}}})
	if err == nil {
		err = c.client.Patch(ctx, machine.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
	}
	if err != nil {
		return fmt.Errorf("writing annotation %s on the Machine: %w", addresses.Annotation, err)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, addresses.Annotation, text)
	return nil
}

// Publish writes how a Machine stands with its pools, in the words of machine-api-operator.
func (s Standing) Publish(conditions *[]metav1.Condition, now time.Time) {
	condition := metav1.Condition{
		Type: string(machinev1beta1.IPAddressClaimedCondition), Status: metav1.ConditionTrue, Reason: machinev1beta1.IPAddressClaimedReason,
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

// MayHave reports whether a Machine with these conditions may have claims, whatever its providerSpec says now.
func MayHave(machine *machinev1beta1.Machine, conditions []metav1.Condition) bool {
	return machine.Annotations[addresses.Annotation] != "" || meta.FindStatusCondition(conditions, string(machinev1beta1.IPAddressClaimedCondition)) != nil
}

// Waiting reports whether these conditions say that a claim has no address yet. Nothing wakes a Machine when it gets one.
func Waiting(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionFalse(conditions, string(machinev1beta1.IPAddressClaimedCondition))
}
