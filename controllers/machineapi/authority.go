package machineapi

import (
	"context"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// Paused is True while another API is authoritative for the object.
	Paused machinev1beta1.ConditionType = "Paused"
	// notMachineAPIReason surfaces while status.authoritativeAPI is ClusterAPI or Migrating.
	notMachineAPIReason = "AuthoritativeAPINotMachineAPI"
	// machineAPIReason surfaces while status.authoritativeAPI is MachineAPI.
	machineAPIReason = "AuthoritativeAPIMachineAPI"
)

// Authority is the part of a Machine or MachineSet that says which API is authoritative for it.
// With OpenShift's feature gate MachineAPIMigration, that may be Cluster API.
type Authority struct {
	// Spec is spec.authoritativeAPI.
	Spec machinev1beta1.MachineAuthority
	// Status is status.authoritativeAPI.
	Status *machinev1beta1.MachineAuthority
	// Conditions are status.conditions.
	Conditions *[]machinev1beta1.Condition
}

// AuthorityOfMachine returns the Authority of a Machine.
func AuthorityOfMachine(machine *machinev1beta1.Machine) Authority {
	return Authority{machine.Spec.AuthoritativeAPI, &machine.Status.AuthoritativeAPI, &machine.Status.Conditions}
}

// AuthorityOfMachineSet returns the Authority of a MachineSet.
func AuthorityOfMachineSet(set *machinev1beta1.MachineSet) Authority {
	return Authority{set.Spec.AuthoritativeAPI, &set.Status.AuthoritativeAPI, &set.Status.Conditions}
}

// IsMachineAPI reports whether the Machine API is authoritative, and its controllers may act on the
// object.
func (a Authority) IsMachineAPI() bool {
	now := a.current()
	return now == unsupported || now == machineAPI
}

// Sync copies spec.authoritativeAPI to an empty status and sets the condition Paused, both in
// memory. It reports whether the Machine API's controllers may act on the object.
func (a Authority) Sync(ctx context.Context, now time.Time) bool {
	switch a.current() {
	case unsupported:
		return true
	case notSynced:
		*a.Status = a.Spec
		return false
	case machineAPI:
		*a.Conditions = WithCondition(*a.Conditions, pausedCondition(*a.Status), now)
		return true
	case otherAPI:
		*a.Conditions = WithCondition(*a.Conditions, pausedCondition(*a.Status), now)
		return false
	default:
		log.FromContext(ctx).Info("Ignoring the object: its authoritative API is unknown", "authoritativeAPI", *a.Status)
		return false
	}
}

// authority is which API is authoritative now.
type authority int

const (
	// unsupported: the installed CRD has no such field.
	unsupported authority = iota
	// notSynced: the status does not have what the spec says yet.
	notSynced
	machineAPI
	otherAPI
	unknown
)

func (a Authority) current() authority {
	switch *a.Status {
	case "":
		if a.Spec == "" {
			return unsupported
		}
		return notSynced
	case machinev1beta1.MachineAuthorityMachineAPI:
		return machineAPI
	case machinev1beta1.MachineAuthorityClusterAPI, machinev1beta1.MachineAuthorityMigrating:
		return otherAPI
	default:
		return unknown
	}
}

// pausedCondition returns the condition Paused for an authoritative API.
func pausedCondition(status machinev1beta1.MachineAuthority) machinev1beta1.Condition {
	condition := machinev1beta1.Condition{
		Type:    Paused,
		Status:  corev1.ConditionTrue,
		Reason:  notMachineAPIReason,
		Message: fmt.Sprintf("The AuthoritativeAPI status is set to '%s'", status),
	}
	if status == machinev1beta1.MachineAuthorityMachineAPI {
		condition.Status = corev1.ConditionFalse
		condition.Severity = machinev1beta1.ConditionSeverityInfo
		condition.Reason = machineAPIReason
	}
	return condition
}
