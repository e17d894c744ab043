package iac

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	claims "github.com/machine-iac/machine-iac-operator/actuators/addresses"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module/addresses"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// addressRetry is how soon claims are looked at again that have no address yet.
const addressRetry = 10 * time.Second

// claimAddresses makes the claims of a Machine on pools of addresses, and writes the addresses on the Machine. It returns that some are waited for,
// without which nothing can be rendered. An instance keeps the addresses that it was made with.
func (a *Actuator) claimAddresses(ctx context.Context, o *observation) error {
	if o.asked == runs.Destroy || o.facts.Foreign() && !o.facts.Adoption.Requested() || o.facts.Adoption.Adoption == lifecycle.AdoptionRelease {
		return nil
	}
	pools := a.poolsOf(o.machine)
	if len(pools) == 0 {
		return nil
	}
	bound, err := claims.New(a.client).Ensure(ctx, o.machine, pools)
	if err != nil {
		failed := reporting.Typed(o.asked, err).In(reporting.ProgressInterval)
		a.publishClaims(o, metav1.ConditionFalse, machinev1beta1.WaitingForIPAddressReason, err.Error())
		return failed
	}
	kept, err := addresses.Parse(o.machine.Annotations[addresses.Annotation])
	if err != nil || o.asked == runs.Create && !o.facts.Unrecorded() {
		kept = nil
	}
	given, missing := chosen(pools, kept, bound)
	if outstanding := len(pools) - len(bound); outstanding > 0 {
		a.publishClaims(o, metav1.ConditionFalse, machinev1beta1.WaitingForIPAddressReason, fmt.Sprintf("Waiting on %d IP address claims to be bound", outstanding))
	} else {
		a.publishClaims(o, metav1.ConditionTrue, machinev1beta1.IPAddressClaimedReason, "All IP address claims are bound")
	}
	if missing > 0 {
		return actuators.InProgress(addressRetry, "Waiting on %d IP address claims to be bound", missing)
	}
	return a.writeAddresses(ctx, o.machine, given)
}

// poolsOf returns the pools that a Machine takes addresses from. What is wrong with its providerSpec is reported when it is rendered.
func (a *Actuator) poolsOf(machine *machinev1beta1.Machine) []addresses.Pool {
	completed, served, err := a.desired.Complete(machine)
	if err != nil || served.Spec().AddressClaims == nil {
		return nil
	}
	providerSpec, err := render.ProviderSpec(completed, served)
	if err != nil {
		return nil
	}
	return addresses.Pools(served.Spec().AddressClaims, providerSpec)
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

// publishClaims writes how the claims stand.
func (a *Actuator) publishClaims(o *observation, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&o.status.Conditions, metav1.Condition{
		Type: string(machinev1beta1.IPAddressClaimedCondition), Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(a.clock.Now()),
	})
}

// writeAddresses writes the addresses on the Machine, where a run reads them. It needs no resourceVersion: the annotation is this operator's alone.
func (a *Actuator) writeAddresses(ctx context.Context, machine *machinev1beta1.Machine, given []addresses.Address) error {
	text, err := addresses.Format(given)
	if err != nil || machine.Annotations[addresses.Annotation] == text {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": machine.UID, "annotations": map[string]any{addresses.Annotation: text},
	}})
	if err != nil {
		return fmt.Errorf("writing annotation %s: %w", addresses.Annotation, err)
	}
	if err := a.client.Patch(ctx, machine.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("writing annotation %s on the Machine: %w", addresses.Annotation, err)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, addresses.Annotation, text)
	return nil
}

// releaseAddresses lets the claims of a Machine go that has no instance any more.
func (a *Actuator) releaseAddresses(ctx context.Context, o *observation) error {
	annotated := o.machine.Annotations[addresses.Annotation] != ""
	claimed := meta.FindStatusCondition(o.status.Conditions, string(machinev1beta1.IPAddressClaimedCondition)) != nil
	if !annotated && !claimed && len(a.poolsOf(o.machine)) == 0 {
		return nil
	}
	return claims.New(a.client).Release(ctx, o.machine)
}
