package v1alpha1

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReportedBy is the value of reportedBy in every provider status of this project.
const ReportedBy = groupName

// TerraformMachineProviderStatus is the Terraform actuator's status in status.providerStatus of a
// Machine. It is for people. The operator bases no decision on it, except when the startup timeout
// of a MachineHealthCheck begins.
//
// apiVersion and kind are those of the platform's own type if the module names it, such as
// AWSMachineProviderStatus, whose fields it then has as well.
type TerraformMachineProviderStatus struct {
	metav1.TypeMeta `json:",inline"`

	// reportedBy is machine-iac.io, which tells this status from one of machine-api-operator.
	ReportedBy string `json:"reportedBy,omitempty"`

	// Platform has the fields of the platform's own type that this type lacks.
	Platform map[string]any `json:"-"`

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

// withoutPlatform is the status without the methods below.
type withoutPlatform TerraformMachineProviderStatus

// Ours reports whether this project wrote the status.
func (s *TerraformMachineProviderStatus) Ours() bool {
	return s.ReportedBy == ReportedBy || s.Kind == TerraformMachineProviderStatusKind
}

// MarshalJSON writes the platform's fields beside the others.
func (s TerraformMachineProviderStatus) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(withoutPlatform(s))
	if err != nil || len(s.Platform) == 0 {
		return raw, err
	}
	fields := maps.Clone(s.Platform)
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// UnmarshalJSON takes unknown fields for the platform's.
func (s *TerraformMachineProviderStatus) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, (*withoutPlatform)(s)); err != nil {
		return err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	maps.DeleteFunc(fields, func(name string, _ any) bool { return IsStatusField(name) })
	s.Platform = nil
	if len(fields) > 0 {
		s.Platform = fields
	}
	return nil
}

// IsStatusField reports whether a name is that of a field of [TerraformMachineProviderStatus], in any
// case, as JSON is decoded.
func IsStatusField(name string) bool { return statusFields[strings.ToLower(name)] }

var statusFields = func() map[string]bool {
	names := map[string]bool{"apiversion": true, "kind": true}
	for field := range reflect.TypeFor[TerraformMachineProviderStatus]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[strings.ToLower(name)] = true
	}
	return names
}()

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
