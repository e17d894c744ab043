package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TerraformMachineProviderStatus is what the Terraform actuator writes into status.providerStatus of a Machine. It shows
// people what happened; the operator decides nothing from it.
type TerraformMachineProviderStatus struct {
	metav1.TypeMeta `json:",inline"`

	// conditions say how far the instance is and what hinders it, one entry a type.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// instanceId is the infrastructure's own name of the instance (the module's output instance_id). Empty until the
	// instance exists.
	InstanceID string `json:"instanceId,omitempty"`

	// instanceState is the infrastructure's word for the instance's state (the module's output instance_state). Empty until
	// the instance exists.
	InstanceState string `json:"instanceState,omitempty"`

	// module names the provider module of the last finished run and its content: name@sha256:digest.
	Module string `json:"module,omitempty"`

	// lastDriftCheckTime is when the instance was last compared with the infrastructure.
	LastDriftCheckTime *metav1.Time `json:"lastDriftCheckTime,omitempty"`

	// lastDriftCheckRequest is the value that the annotation machine-iac.io/check-drift had when the instance was last compared. Empty where it had
	// none.
	LastDriftCheckRequest string `json:"lastDriftCheckRequest,omitempty"`

	// secondLookTime is when a second instance is looked for, after a create that followed a lookup which found nothing. Not set otherwise.
	SecondLookTime *metav1.Time `json:"secondLookTime,omitempty"`

	// adoption is what was planned about the adoption of an instance that something else has made. Not set once it is adopted.
	Adoption *AdoptionStatus `json:"adoption,omitempty"`

	// failure is what hinders the operation that failed last. Not set once one has succeeded.
	Failure *FailureStatus `json:"failure,omitempty"`

	// run is the run that is queued or under way. Not set when there is none.
	Run *RunStatus `json:"run,omitempty"`
}

// FailureStatus describes an operation that has failed, for programs. The Machine's conditions have the message.
type FailureStatus struct {
	// operation is what has failed: Create, Update or Destroy.
	Operation RunOperation `json:"operation"`
	// class says how the failure is handled: InvalidConfiguration, Quota, Credentials, Throttled, Transient, Interrupted, Locked, Killed,
	// StateNotSaved, ImportMissing or Unknown. Where no engine has failed it is the Machine API's reason, such as CreateError.
	Class string `json:"class"`
}

// AdoptionStatus describes the plan of an adoption. It names resources and attributes, and shows no values of them.
type AdoptionStatus struct {
	// plannedAt is when it was planned.
	PlannedAt metav1.Time `json:"plannedAt"`
	// imports are the addresses of the resources that would be brought into the state.
	Imports []string `json:"imports,omitempty"`
	// creates are the addresses of the resources that would be created.
	Creates []string `json:"creates,omitempty"`
	// changes are the resources that would be changed in place, with the names of the attributes.
	Changes []string `json:"changes,omitempty"`
	// differences say what differs from the providerSpec and stays as it is.
	Differences []string `json:"differences,omitempty"`
	// refused says why the instance cannot be adopted. Empty where it can.
	Refused string `json:"refused,omitempty"`
}

// RunOperation is what a run does.
type RunOperation string

// The operations of a run.
const (
	// RunCreate makes the instance.
	RunCreate RunOperation = "Create"
	// RunUpdate brings an existing instance to its providerSpec, in place.
	RunUpdate RunOperation = "Update"
	// RunDriftCheck compares the instance with its providerSpec and changes nothing.
	RunDriftCheck RunOperation = "DriftCheck"
	// RunDestroy removes the instance.
	RunDestroy RunOperation = "Destroy"
)

// RunStatus describes one run.
type RunStatus struct {
	// operation is what the run does: Create, Update, DriftCheck or Destroy.
	Operation RunOperation `json:"operation"`
	// queuedAt is when the run was asked for.
	QueuedAt *metav1.Time `json:"queuedAt,omitempty"`
	// startedAt is when the run began. Not set while it waits in the queue.
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// waitsFor is what a run that has begun waits for in the cluster: the queue of its Job, with Kueue's words. Not set when it goes on.
	WaitsFor string `json:"waitsFor,omitempty"`
}
