package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFieldsInAnotherCaseAreNotThePlatforms(t *testing.T) {
	var status TerraformMachineProviderStatus
	if err := json.Unmarshal([]byte(`{"Failure":{"operation":"Create","class":"Quota"},"KIND":"x","vmId":"1"}`), &status); err != nil {
		t.Fatal(err)
	}
	if len(status.Platform) != 1 || status.Platform["vmId"] != "1" {
		t.Errorf("got the platform's fields %v, want vmId only", status.Platform)
	}
}

func TestProviderStatusKeepsItsFieldNames(t *testing.T) {
	at := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	status := TerraformMachineProviderStatus{
		TypeMeta: metav1.TypeMeta{
			APIVersion: GroupVersion.String(),
			Kind:       TerraformMachineProviderStatusKind,
		},
		InstanceID:         "i-1",
		InstanceState:      "Running",
		Module:             "kubemark@sha256:00",
		LastDriftCheckTime: &at,
		Run:                &RunStatus{Operation: RunUpdate, QueuedAt: &at, StartedAt: &at},
		Conditions:         []metav1.Condition{{Type: "Provisioned", Status: metav1.ConditionTrue, Reason: "Created", LastTransitionTime: at}},
	}
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"kind":"TerraformMachineProviderStatus","apiVersion":"machine-iac.io/v1alpha1",` +
		`"conditions":[{"type":"Provisioned","status":"True","lastTransitionTime":"2030-01-02T03:04:05Z","reason":"Created","message":""}],` +
		`"instanceId":"i-1","instanceState":"Running","module":"kubemark@sha256:00",` +
		`"lastDriftCheckTime":"2030-01-02T03:04:05Z",` +
		`"run":{"operation":"Update","queuedAt":"2030-01-02T03:04:05Z","startedAt":"2030-01-02T03:04:05Z"}}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("a Machine's providerStatus is read by others; its names must stay (-want +got):\n%s", diff)
	}
}
