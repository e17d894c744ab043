package machineset

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/conditions"
)

const (
	// pausedCondition is True while another API is in charge of the MachineSet.
	pausedCondition machinev1beta1.ConditionType = "Paused"
	// notAuthoritativeReason surfaces while status.authoritativeAPI is ClusterAPI or Migrating.
	notAuthoritativeReason = "AuthoritativeAPINotMachineAPI"
	// authoritativeReason surfaces while status.authoritativeAPI is MachineAPI.
	authoritativeReason = "AuthoritativeAPIMachineAPI"
)

// authority ends the pass when the MachineSet is not ours to act on.
type authority struct {
	clock clock.PassiveClock
}

// Reconcile implements step.
func (a *authority) Reconcile(ctx context.Context, s *scope) (bool, error) {
	status := &s.set.Status
	switch inCharge(s.set.Spec.AuthoritativeAPI, status.AuthoritativeAPI) {
	case nobodySaid:
		return true, nil
	case specToStatus:
		status.AuthoritativeAPI = s.set.Spec.AuthoritativeAPI
		return false, nil
	case us:
		status.Conditions = conditions.With(status.Conditions, paused(status.AuthoritativeAPI), a.clock.Now())
		return true, nil
	case another:
		status.Conditions = conditions.With(status.Conditions, paused(status.AuthoritativeAPI), a.clock.Now())
		return false, nil
	default:
		log.FromContext(ctx).Info("Leaving the MachineSet alone: nothing known is in charge of it", "authoritativeAPI", status.AuthoritativeAPI)
		return false, nil
	}
}

type charge int

const (
	// nobodySaid: the installed CRD has no such field.
	nobodySaid charge = iota
	// specToStatus: the wish in spec has not been taken over yet.
	specToStatus
	us
	another
	unknown
)

// inCharge decides who acts on a MachineSet by the authoritativeAPI in its spec and its status.
func inCharge(spec, status machinev1beta1.MachineAuthority) charge {
	switch status {
	case "":
		if spec == "" {
			return nobodySaid
		}
		return specToStatus
	case machinev1beta1.MachineAuthorityMachineAPI:
		return us
	case machinev1beta1.MachineAuthorityClusterAPI, machinev1beta1.MachineAuthorityMigrating:
		return another
	default:
		return unknown
	}
}

// paused answers the condition that tells who is in charge.
func paused(status machinev1beta1.MachineAuthority) machinev1beta1.Condition {
	condition := machinev1beta1.Condition{
		Type:    pausedCondition,
		Status:  corev1.ConditionTrue,
		Reason:  notAuthoritativeReason,
		Message: fmt.Sprintf("The AuthoritativeAPI status is set to '%s'", status),
	}
	if status == machinev1beta1.MachineAuthorityMachineAPI {
		condition.Status = corev1.ConditionFalse
		condition.Severity = machinev1beta1.ConditionSeverityInfo
		condition.Reason = authoritativeReason
	}
	return condition
}
