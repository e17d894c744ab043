// Package authority tells whether the Machine API is in charge of an object, on clusters whose CRDs let another API be: the feature
// gate MachineAPIMigration of OpenShift, with spec.authoritativeAPI and status.authoritativeAPI.
package authority

import (
	"context"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/conditions"
)

const (
	// Paused is True while another API is in charge of the object.
	Paused machinev1beta1.ConditionType = "Paused"
	// notMachineAPI surfaces while status.authoritativeAPI is ClusterAPI or Migrating.
	notMachineAPI = "AuthoritativeAPINotMachineAPI"
	// machineAPI surfaces while status.authoritativeAPI is MachineAPI.
	machineAPI = "AuthoritativeAPIMachineAPI"
)

// Subject is the part of a Machine or MachineSet that says who is in charge.
type Subject struct {
	// Wanted is spec.authoritativeAPI.
	Wanted machinev1beta1.MachineAuthority
	// InCharge is status.authoritativeAPI.
	InCharge *machinev1beta1.MachineAuthority
	// Conditions are the status's.
	Conditions *[]machinev1beta1.Condition
}

// OfMachine answers the Subject that a Machine is.
func OfMachine(machine *machinev1beta1.Machine) Subject {
	return Subject{machine.Spec.AuthoritativeAPI, &machine.Status.AuthoritativeAPI, &machine.Status.Conditions}
}

// OfMachineSet answers the Subject that a MachineSet is.
func OfMachineSet(set *machinev1beta1.MachineSet) Subject {
	return Subject{set.Spec.AuthoritativeAPI, &set.Status.AuthoritativeAPI, &set.Status.Conditions}
}

// Ours reports whether the Machine API may act on the object.
func (s Subject) Ours() bool {
	charge := s.charge()
	return charge == nobodySaid || charge == us
}

// Settle brings the status up to what is known of who is in charge, in memory, and reports whether the Machine API may act on
// the object. A wish that the status does not show yet is taken over first.
func (s Subject) Settle(ctx context.Context, now time.Time) bool {
	switch s.charge() {
	case nobodySaid:
		return true
	case specToStatus:
		*s.InCharge = s.Wanted
		return false
	case us:
		*s.Conditions = conditions.With(*s.Conditions, paused(*s.InCharge), now)
		return true
	case another:
		*s.Conditions = conditions.With(*s.Conditions, paused(*s.InCharge), now)
		return false
	default:
		log.FromContext(ctx).Info("Leaving the object alone: nothing known is in charge of it", "authoritativeAPI", *s.InCharge)
		return false
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

func (s Subject) charge() charge {
	switch *s.InCharge {
	case "":
		if s.Wanted == "" {
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
		Type:    Paused,
		Status:  corev1.ConditionTrue,
		Reason:  notMachineAPI,
		Message: fmt.Sprintf("The AuthoritativeAPI status is set to '%s'", status),
	}
	if status == machinev1beta1.MachineAuthorityMachineAPI {
		condition.Status = corev1.ConditionFalse
		condition.Severity = machinev1beta1.ConditionSeverityInfo
		condition.Reason = machineAPI
	}
	return condition
}
