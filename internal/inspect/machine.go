package inspect

import (
	"encoding/json"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// Condition is a condition with a problem.
type Condition struct {
	// Type of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status string `json:"status"`
	// Reason in one word.
	Reason string `json:"reason,omitempty"`
	// Message for people.
	Message string `json:"message,omitempty"`
	// Since is when the status changed.
	Since metav1.Time `json:"since"`
}

func (c Condition) String() string {
	text := c.Type + "=" + c.Status
	if c.Reason != "" {
		text += " " + c.Reason
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

// bad are the conditions that report a problem when they are True. All others report one when they are False or Unknown.
var bad = map[string]bool{
	drifted: true, v1beta1.ConditionPaused: true, v1beta1.ConditionReplicaFailure: true, v1beta1.ConditionStalled: true,
	string(corev1.NodeMemoryPressure): true, string(corev1.NodeDiskPressure): true, string(corev1.NodePIDPressure): true,
	string(corev1.NodeNetworkUnavailable): true,
}

// drifted is a condition of the provider status.
const drifted = "Drifted"

// matters reports whether a condition is to be shown.
func matters(kind, status string) bool {
	if bad[kind] {
		return status == string(metav1.ConditionTrue)
	}
	return status != string(metav1.ConditionTrue)
}

func machineConditions(conditions []machinev1beta1.Condition) []Condition {
	var shown []Condition
	for _, c := range conditions {
		if matters(string(c.Type), string(c.Status)) {
			shown = append(shown, Condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime})
		}
	}
	return shown
}

func providerConditions(conditions []metav1.Condition) []Condition {
	var shown []Condition
	for _, c := range conditions {
		if matters(c.Type, string(c.Status)) {
			shown = append(shown, Condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime})
		}
	}
	return shown
}

func nodeConditions(conditions []corev1.NodeCondition) []Condition {
	var shown []Condition
	for _, c := range conditions {
		if matters(string(c.Type), string(c.Status)) {
			shown = append(shown, Condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime})
		}
	}
	return shown
}

// ProviderStatus decodes a Machine's provider status. That of another operator is empty.
func ProviderStatus(machine *machinev1beta1.Machine) v1alpha1.TerraformMachineProviderStatus {
	var status v1alpha1.TerraformMachineProviderStatus
	raw := machine.Status.ProviderStatus
	if raw == nil || json.Unmarshal(raw.Raw, &status) != nil || !status.Ours() {
		return v1alpha1.TerraformMachineProviderStatus{}
	}
	return status
}

// phase returns a Machine's phase, Deleting as soon as it has a deletion timestamp.
func phase(machine *machinev1beta1.Machine) string {
	switch {
	case machine.DeletionTimestamp != nil:
		return machinev1beta1.PhaseDeleting
	case machine.Status.Phase == nil || *machine.Status.Phase == "":
		return "-"
	}
	return *machine.Status.Phase
}

// failure returns the terminal failure of a status.
func failure[reason ~string](why *reason, message *string) string {
	switch {
	case why == nil && message == nil:
		return ""
	case message == nil:
		return string(*why)
	case why == nil:
		return *message
	}
	return fmt.Sprintf("%s: %s", string(*why), *message)
}
