package driver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Words of the Machine API.
const (
	phaseFailed   = "Failed"
	phaseDeleting = "Deleting"

	instanceExists   = "InstanceExists"
	instanceUpToDate = "InstanceUpToDate"

	operationCreate  = "Create"
	operationDestroy = "Destroy"

	reasonInvalid = "InvalidConfiguration"
	// reasonChecking means that nothing is known for a moment: the next reconcile checks again.
	reasonChecking = "ErrorCheckingProvider"

	annotationFailedGeneration = "machine-iac.io/failed-generation"
)

// machine is the driver's view of a Machine of machine.openshift.io. It does not use
// github.com/openshift/api, which requires a later Kubernetes than MCM.
type machine struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   machineSpec   `json:"spec"`
	Status machineStatus `json:"status"`

	// fresh reports that this driver has written the spec and the manager has written nothing
	// since, so that the status refers to an earlier spec.
	fresh bool
}

type machineSpec struct {
	ProviderID     string         `json:"providerID"`
	LifecycleHooks lifecycleHooks `json:"lifecycleHooks"`
	ProviderSpec   struct {
		Value map[string]any `json:"value"`
	} `json:"providerSpec"`
}

type lifecycleHooks struct {
	PreTerminate []lifecycleHook `json:"preTerminate"`
}

type lifecycleHook struct {
	Name  string `json:"name"`
	Owner string `json:"owner"`
}

type machineStatus struct {
	Phase          string                  `json:"phase"`
	ErrorReason    string                  `json:"errorReason"`
	ErrorMessage   string                  `json:"errorMessage"`
	NodeRef        *corev1.ObjectReference `json:"nodeRef"`
	Addresses      []corev1.NodeAddress    `json:"addresses"`
	Conditions     []condition             `json:"conditions"`
	ProviderStatus providerStatus          `json:"providerStatus"`
}

type condition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// providerStatus is a part of the operator's TerraformMachineProviderStatus.
type providerStatus struct {
	Failure *failureStatus `json:"failure"`
	Run     *runStatus     `json:"run"`
}

type failureStatus struct {
	Operation string `json:"operation"`
	Class     string `json:"class"`
}

type runStatus struct {
	Operation string `json:"operation"`
}

// read decodes an object.
func read(object *unstructured.Unstructured) (*machine, error) {
	m := &machine{}
	raw, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, m)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Machine %s: %w", object.GetName(), err)
	}
	return m, nil
}

func (m *machine) condition(kind string) condition {
	for _, c := range m.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return condition{}
}

// belongsTo reports whether an MCM Machine owns this one.
func (m *machine) belongsTo(owner *mcm.Machine) bool {
	controller := metav1.GetControllerOf(m)
	return controller != nil && controller.UID == owner.UID
}

// created reports whether the instance exists. The error says why it does not and will not without
// help.
func (m *machine) created() (bool, error) {
	if m.fresh {
		return false, nil
	}
	exists := m.condition(instanceExists)
	if m.Spec.ProviderID != "" && exists.Status == corev1.ConditionTrue {
		return true, nil
	}
	return false, m.failure()
}

// initialized reports whether the instance matches the Machine.
func (m *machine) initialized() (bool, error) {
	if made, err := m.created(); err != nil || !made {
		return false, err
	}
	if m.condition(instanceUpToDate).Status == corev1.ConditionTrue {
		return true, nil
	}
	return false, m.failure()
}

// held reports whether the driver's hook blocks the instance's deletion.
func (m *machine) held() bool {
	return slices.ContainsFunc(m.Spec.LifecycleHooks.PreTerminate,
		func(hook lifecycleHook) bool { return hook.Name == hookName })
}

// changing reports whether a run is in progress that may create or delete an instance.
func (m *machine) changing() bool {
	run := m.Status.ProviderStatus.Run
	return run != nil && (run.Operation == operationCreate || run.Operation == operationDestroy)
}

// providerID returns the instance's ID in MCM's Machine.
func (m *machine) providerID() string { return m.Spec.ProviderID }

// nodeName returns the name with which the instance registers its Node. The modules list it among
// the addresses, as the kubelet gets it from the host.
func (m *machine) nodeName() string {
	if m.Status.NodeRef != nil && m.Status.NodeRef.Name != "" {
		return m.Status.NodeRef.Name
	}
	for _, address := range m.Status.Addresses {
		if address.Type == corev1.NodeHostName && address.Address != "" {
			return address.Address
		}
	}
	return m.Name
}

// known summarizes the instance in a line, which MCM shows as the last known state. Nothing parses
// it.
func (m *machine) known() string {
	parts := []string{"phase " + cmp.Or(m.Status.Phase, "unknown")}
	if id := m.providerID(); id != "" {
		parts = append(parts, "instance "+id)
	}
	if run := m.Status.ProviderStatus.Run; run != nil {
		parts = append(parts, "run "+run.Operation)
	}
	if last := m.Status.ProviderStatus.Failure; last != nil {
		parts = append(parts, fmt.Sprintf("last failure %s in %s", last.Class, last.Operation))
	}
	return strings.Join(parts, ", ")
}

// because returns the Machine's message about its instance after a colon, or "".
func (m *machine) because() string {
	for _, text := range []string{m.Status.ErrorMessage, m.condition(instanceUpToDate).Message,
		m.condition(instanceExists).Message} {
		if text != "" {
			return ": " + text
		}
	}
	return ""
}
