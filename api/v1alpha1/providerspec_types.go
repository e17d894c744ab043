package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TerraformMachineProviderSpec is a providerSpec for any provider module. It names the module, and
// carries the fields that a kind of the module's own would have. It is used in
// spec.providerSpec.value of a Machine and of a MachineSet's template.
type TerraformMachineProviderSpec struct {
	metav1.TypeMeta `json:",inline"`

	// module is the name of a loaded provider module, as in its metadata.name: a DNS label.
	// Required.
	Module string `json:"module"`

	// values are the attributes of the module's variable provider_spec, in its spelling and units.
	// They are validated against the variable's type and validations. A missing or null attribute
	// takes the variable's default; an unknown attribute is ignored with a warning. Defaults to an
	// empty object.
	Values *runtime.RawExtension `json:"values,omitempty"`

	// credentialsSecret names the Secret with the keys that the module reads (spec.credentials.keys
	// of its module.yaml). If provider_spec has an attribute for the name (spec.credentials.path),
	// values may set it there instead; if both are set they must be equal. Required if the module
	// requires a key and values does not name the Secret.
	CredentialsSecret *LocalSecretReference `json:"credentialsSecret,omitempty"`

	// userDataSecret names the Secret with the user data (what the instance runs at its first boot)
	// in the module's key, which is "userData" by default. If provider_spec has an attribute for
	// the name (spec.userData.path), values may set it there instead; if both are set they must be
	// equal. If omitted, the instance gets no user data.
	UserDataSecret *LocalSecretReference `json:"userDataSecret,omitempty"`

	// driftPolicy says what happens when the instance differs from what was applied: Report, Repair
	// or Ignore. Defaults to Report.
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`
}

// PulumiMachineProviderSpec is a providerSpec for any stack, a provider module whose program Pulumi
// runs. It corresponds to [TerraformMachineProviderSpec] for modules in HCL, and is used in
// spec.providerSpec.value of a Machine and of a MachineSet's template.
type PulumiMachineProviderSpec struct {
	metav1.TypeMeta `json:",inline"`

	// stack is the name of a loaded stack, as in metadata.name of its module.yaml: a DNS label. A
	// module in HCL may have the same name without being the same module. Required.
	Stack string `json:"stack"`

	// values are the attributes of the stack's variable provider_spec, in its spelling and units.
	// They are validated against the variable's type and validations. A missing or null attribute
	// takes the variable's default; an unknown attribute is ignored with a warning. Defaults to an
	// empty object.
	Values *runtime.RawExtension `json:"values,omitempty"`

	// credentialsSecret names the Secret with the keys that the stack reads (spec.credentials.keys
	// of its module.yaml). If provider_spec has an attribute for the name (spec.credentials.path),
	// values may set it there instead; if both are set they must be equal. Required if the stack
	// requires a key and values does not name the Secret.
	CredentialsSecret *LocalSecretReference `json:"credentialsSecret,omitempty"`

	// userDataSecret names the Secret with the user data (what the instance runs at its first boot)
	// in the stack's key, which is "userData" by default. If provider_spec has an attribute for the
	// name (spec.userData.path), values may set it there instead; if both are set they must be
	// equal. If omitted, the instance gets no user data.
	UserDataSecret *LocalSecretReference `json:"userDataSecret,omitempty"`

	// driftPolicy says what happens when the instance differs from what was applied: Report, Repair
	// or Ignore. Defaults to Report.
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`
}

// LocalSecretReference names a Secret in the namespace of the referring object.
type LocalSecretReference struct {
	// name is the Secret's name.
	Name string `json:"name"`
}

// DriftPolicy says what happens to an instance that was changed outside the operator.
type DriftPolicy string

const (
	// DriftReport reports the drift on the Machine and leaves the instance unchanged. It is the
	// default.
	DriftReport DriftPolicy = "Report"
	// DriftRepair reverts the drift in place as far as possible, and reports the rest.
	DriftRepair DriftPolicy = "Repair"
	// DriftIgnore ignores changes by others.
	DriftIgnore DriftPolicy = "Ignore"
)

// DriftPolicyAnnotation sets the [DriftPolicy] of a Machine whose providerSpec is neither a
// [TerraformMachineProviderSpec] nor a [PulumiMachineProviderSpec].
const DriftPolicyAnnotation = groupName + "/drift-policy"
