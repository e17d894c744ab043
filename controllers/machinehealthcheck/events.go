package machinehealthcheck

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// detectedUnhealthy reports that a Machine will be remediated unless it recovers.
func detectedUnhealthy(t *target) events.Event {
	return events.Normal(t.machine, "DetectedUnhealthy", "Check",
		fmt.Sprintf("Machine %s is unhealthy: %s. It is remediated after that time unless it recovers.", t.machine.Name, t.health.why))
}

// remediationRestricted reports that no Machine is remediated.
func remediationRestricted(check *machinev1beta1.MachineHealthCheck, why string) events.Event {
	return events.Warning(check, "RemediationRestricted", "Check", "Remediation is restricted: "+why)
}

// remediationDeferred reports that Machines wait for the remediation of others.
func remediationDeferred(check *machinev1beta1.MachineHealthCheck, waiting, limit int) events.Event {
	return events.Normal(check, "RemediationDeferred", "Remediate", deferral(waiting, limit))
}

// deferral returns the message that Machines wait for the remediation of others.
func deferral(waiting, limit int) string {
	return fmt.Sprintf("%d unhealthy Machines are waiting: %s allows %d remediations at a time", waiting, inFlightAnnotation, limit)
}

// invalidAnnotation reports an invalid annotation, and how to fix it.
func invalidAnnotation(check *machinev1beta1.MachineHealthCheck, key, value, fix string) events.Event {
	return events.Warning(check, "InvalidAnnotation", "Check", fmt.Sprintf("The annotation %s has the value %q: %s", key, value, fix))
}

// skippedNoController reports that a Machine is not deleted because no controller would replace it.
func skippedNoController(t *target) events.Event {
	return events.Normal(t.machine, "SkippedNoController", "Remediate",
		fmt.Sprintf("Machine %s is unhealthy (%s) and is not deleted: it has no controller that would replace it",
			t.machine.Name, t.health.why))
}

// machineDeleted reports that a Machine's deletion was requested.
func machineDeleted(t *target) events.Event {
	return events.Normal(t.machine, "MachineDeleted", "Remediate",
		fmt.Sprintf("Machine %s is deleted because it is unhealthy: %s", t.machine.Name, t.health.why))
}

// machineDeletionFailed reports that a Machine's deletion was refused.
func machineDeletionFailed(t *target, err error) events.Event {
	return events.Warning(t.machine, "MachineDeletionFailed", "Remediate",
		fmt.Sprintf("Machine %s is unhealthy (%s) and could not be deleted: %v", t.machine.Name, t.health.why, err))
}

// externalAnnotationAdded reports that external remediation was requested.
func externalAnnotationAdded(t *target) events.Event {
	return events.Normal(t.machine, "ExternalAnnotationAdded", "Remediate",
		fmt.Sprintf("Machine %s got the annotation %s because it is unhealthy: %s", t.machine.Name, externalAnnotation, t.health.why))
}

// externalAnnotationFailed reports that external remediation could not be requested.
func externalAnnotationFailed(t *target, err error) events.Event {
	return events.Warning(t.machine, "ExternalAnnotationFailed", "Remediate",
		fmt.Sprintf("Machine %s is unhealthy (%s) and could not get the annotation %s: %v",
			t.machine.Name, t.health.why, externalAnnotation, err))
}
