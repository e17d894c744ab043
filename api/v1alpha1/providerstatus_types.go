package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TerraformMachineProviderStatus is the Terraform actuator's status in status.providerStatus of a
// Machine. It is for people. The operator bases no decision on it, except when the startup timeout
// of a MachineHealthCheck begins.
type TerraformMachineProviderStatus struct {
	metav1.TypeMeta `json:",inline"`

	// conditions report the progress of the instance and its problems, one entry per type.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// instanceId is the instance's ID in the infrastructure (the module's output instance_id).
	// Empty until the instance exists.
	InstanceID string `json:"instanceId,omitempty"`

	// instanceState is the infrastructure's name for the instance's state (the module's output
	// instance_state). Empty until the instance exists.
	InstanceState string `json:"instanceState,omitempty"`

	// module is the provider module of the last finished run with its digest: name@sha256:digest.
	Module string `json:"module,omitempty"`

	// lastDriftCheckTime is the time of the last drift check.
	LastDriftCheckTime *metav1.Time `json:"lastDriftCheckTime,omitempty"`

	// lastDriftCheckRequest is the value of the annotation machine-iac.io/check-drift at the last
	// drift check. Empty if it had none.
	LastDriftCheckRequest string `json:"lastDriftCheckRequest,omitempty"`

	// secondLookTime is when to look for a duplicate instance, after a create that followed an
	// empty lookup. Not set otherwise.
	SecondLookTime *metav1.Time `json:"secondLookTime,omitempty"`

	// adoption is the plan to adopt an existing instance. Not set once it is adopted.
	Adoption *AdoptionStatus `json:"adoption,omitempty"`

	// failure describes the last failed operation. Not set once an operation has succeeded.
	Failure *FailureStatus `json:"failure,omitempty"`

	// run is the queued or running run. Not set if there is none.
	Run *RunStatus `json:"run,omitempty"`
}

// FailureStatus describes a failed operation, for programs. The Machine's conditions contain the
// message.
type FailureStatus struct {
	// operation is the failed operation: Create, Update or Destroy.
	Operation RunOperation `json:"operation"`
	// class says how the failure is handled: InvalidConfiguration, Quota, Credentials, Throttled,
	// Transient, Interrupted, Locked, Killed, StateNotSaved, ImportMissing, ProviderNotInstalled or
	// Unknown. If no engine has failed, it is the Machine API's reason, such as CreateError.
	Class string `json:"class"`
}

// AdoptionStatus describes the plan of an adoption. It names resources and attributes without their
// values.
type AdoptionStatus struct {
	// plannedAt is when it was planned.
	PlannedAt metav1.Time `json:"plannedAt"`
	// imports are the addresses of the resources that would be imported.
	Imports []string `json:"imports,omitempty"`
	// creates are the addresses of the resources that would be created.
	Creates []string `json:"creates,omitempty"`
	// changes are the resources that would be changed in place, with the names of the attributes.
	Changes []string `json:"changes,omitempty"`
	// differences are the differences from the providerSpec that stay unchanged.
	Differences []string `json:"differences,omitempty"`
	// refused says why the instance cannot be adopted, or is empty.
	Refused string `json:"refused,omitempty"`
}

// RunOperation is what a run does.
type RunOperation string

// The operations of a run.
const (
	// RunCreate creates the instance.
	RunCreate RunOperation = "Create"
	// RunUpdate brings an existing instance to its providerSpec in place.
	RunUpdate RunOperation = "Update"
	// RunDriftCheck compares the instance with its providerSpec and changes nothing.
	RunDriftCheck RunOperation = "DriftCheck"
	// RunDestroy destroys the instance.
	RunDestroy RunOperation = "Destroy"
)

// RunStatus describes one run.
type RunStatus struct {
	// operation is what the run does: Create, Update, DriftCheck or Destroy.
	Operation RunOperation `json:"operation"`
	// queuedAt is when the run was submitted.
	QueuedAt *metav1.Time `json:"queuedAt,omitempty"`
	// startedAt is when the run began. Not set while it is queued.
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// waitsFor is what the run waits for: the queue of its Job, in Kueue's words, or an
	// infrastructure that throttles its credentials. Not set otherwise.
	WaitsFor string `json:"waitsFor,omitempty"`
}
