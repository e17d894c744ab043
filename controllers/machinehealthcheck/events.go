package machinehealthcheck

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// Notes begin with the Machine API's text, which scripts compare; what follows it is this
// project's.

// pathOf names a target as the Machine API does: by namespace, MachineHealthCheck, Machine and
// Node.
func pathOf(check *machinev1beta1.MachineHealthCheck, t *target) string {
	return fmt.Sprintf("%s/%s/%s/%s", check.Namespace, check.Name, t.machine.Name, t.nodeName())
}

// detectedUnhealthy reports that a Machine will be remediated unless it recovers.
func detectedUnhealthy(check *machinev1beta1.MachineHealthCheck, t *target) events.Event {
	return events.Normal(t.machine, "DetectedUnhealthy", "HealthCheck", fmt.Sprintf(
		"Machine %s has unhealthy node %s (%s); it is remediated after that time unless it recovers", pathOf(check, t),
		t.nodeName(), t.health.why))
}

// tooManyUnhealthy reports that no Machine is remediated, because too many are unhealthy.
func tooManyUnhealthy(check *machinev1beta1.MachineHealthCheck, numbers string) events.Event {
	return events.Warning(check, "RemediationRestricted", "Remediate",
		"Remediation restricted due to exceeded number of unhealthy machines "+numbers)
}

// remediationRestricted reports that no Machine is remediated, because of something that the
// Machine API does not report.
func remediationRestricted(check *machinev1beta1.MachineHealthCheck, why string) events.Event {
	return events.Warning(check, "RemediationRestricted", "Remediate", "Remediation is restricted: "+why)
}

// remediationDeferred reports that Machines wait for the remediation of others.
func remediationDeferred(check *machinev1beta1.MachineHealthCheck, waiting, limit int) events.Event {
	return events.Normal(check, "RemediationDeferred", "Remediate", deferral(waiting, limit))
}

// deferral returns the message that Machines wait for the remediation of others.
func deferral(waiting, limit int) string {
	return fmt.Sprintf("%d unhealthy Machines are waiting: %s allows %d remediations at a time", waiting, machineapi.InFlightAnnotation, limit)
}

// invalidAnnotation reports an invalid annotation, and how to fix it.
func invalidAnnotation(check *machinev1beta1.MachineHealthCheck, key, value, fix string) events.Event {
	return events.Warning(check, "InvalidAnnotation", "Check",
		fmt.Sprintf("The annotation %s has the value %q: %s", key, value, fix))
}

// skippedNoController reports that a Machine is not deleted because no controller would replace it.
func skippedNoController(check *machinev1beta1.MachineHealthCheck, t *target) events.Event {
	return events.Normal(t.machine, "SkippedNoController", "Remediate",
		fmt.Sprintf("Machine %s has no controller owner, skipping remediation (%s)", pathOf(check, t), t.health.why))
}

// machineDeleted reports that a Machine's deletion was requested.
func machineDeleted(check *machinev1beta1.MachineHealthCheck, t *target) events.Event {
	return events.Normal(t.machine, "MachineDeleted", "Remediate",
		fmt.Sprintf("Machine %s has been remediated by requesting to delete Machine object (%s)", pathOf(check, t),
			t.health.why))
}

// machineDeletionFailed reports that a Machine's deletion was refused.
func machineDeletionFailed(check *machinev1beta1.MachineHealthCheck, t *target, err error) events.Event {
	return events.Warning(t.machine, "MachineDeletionFailed", "Remediate", fmt.Sprintf(
		"Machine %s remediation failed: unable to delete Machine object: %v (%s)", pathOf(check, t), err, t.health.why))
}

// externalAnnotationAdded reports that external remediation was requested.
func externalAnnotationAdded(check *machinev1beta1.MachineHealthCheck, t *target) events.Event {
	return events.Normal(t.machine, "ExternalAnnotationAdded", "Remediate", fmt.Sprintf(
		"Requesting external remediation of node associated with machine %s (%s)", pathOf(check, t), t.health.why))
}

// externalAnnotationFailed reports that external remediation could not be requested.
func externalAnnotationFailed(check *machinev1beta1.MachineHealthCheck, t *target, err error) events.Event {
	return events.Warning(t.machine, "ExternalAnnotationFailed", "Remediate", fmt.Sprintf(
		"Requesting external remediation of node associated with machine %s failed: %v (%s)", pathOf(check, t), err,
		t.health.why))
}
