package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TerraformMachineProviderSpec is a providerSpec for any provider module: it names the module, and carries what the module's own
// kind would have as fields. It stands in spec.providerSpec.value of a Machine and of a MachineSet's template.
type TerraformMachineProviderSpec struct {
	metav1.TypeMeta `json:",inline"`

	// module is the name of a provider module that the operator has loaded, as the module's metadata.name writes it: a DNS label.
	// Required.
	Module string `json:"module"`

	// values are the attributes of the module's variable provider_spec, in its spelling and its units. They are checked against the
	// variable's type and validations; an attribute that is left out, or null, takes the variable's default, and one that the type
	// does not have is ignored with a warning. Defaults to an empty object.
	Values *runtime.RawExtension `json:"values,omitempty"`

	// credentialsSecret names the Secret with the keys that the module reads (spec.credentials.keys of its module.yaml). Where
	// provider_spec has an attribute for the name (spec.credentials.path), values may give it there instead; where both are given
	// they must be the same. Required if the module requires a key and values does not name the Secret.
	CredentialsSecret *LocalSecretReference `json:"credentialsSecret,omitempty"`

	// userDataSecret names the Secret with the user data (what the instance runs at its first boot) at the module's key, which
	// is "userData" by default. Where provider_spec has an attribute for the name (spec.userData.path), values may give it there
	// instead; where both are given they must be the same. When there is none, the instance gets no user data.
	UserDataSecret *LocalSecretReference `json:"userDataSecret,omitempty"`

	// driftPolicy says what becomes of an instance that is found to be other than what was applied: Report, Repair or Ignore.
	// Defaults to Report.
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`
}

// PulumiMachineProviderSpec is a providerSpec for any stack, which is a provider module whose program Pulumi runs: what
// [TerraformMachineProviderSpec] is for modules in HCL. It stands in spec.providerSpec.value of a Machine and of a MachineSet's template.
type PulumiMachineProviderSpec struct {
	metav1.TypeMeta `json:",inline"`

	// stack is the name of a stack that the operator has loaded, as metadata.name in the stack's module.yaml writes it: a DNS label. A
	// module in HCL may have the same name, and is another one. Required.
	Stack string `json:"stack"`

	// values are the attributes of the stack's variable provider_spec, in its spelling and its units. They are checked against the
	// variable's type and validations; an attribute that is left out, or null, takes the variable's default, and one that the type
	// does not have is ignored with a warning. Defaults to an empty object.
	Values *runtime.RawExtension `json:"values,omitempty"`

	// credentialsSecret names the Secret with the keys that the stack reads (spec.credentials.keys of its module.yaml). Where
	// provider_spec has an attribute for the name (spec.credentials.path), values may give it there instead; where both are given
	// they must be the same. Required if the stack requires a key and values does not name the Secret.
	CredentialsSecret *LocalSecretReference `json:"credentialsSecret,omitempty"`

	// userDataSecret names the Secret with the user data (what the instance runs at its first boot) at the stack's key, which
	// is "userData" by default. Where provider_spec has an attribute for the name (spec.userData.path), values may give it there
	// instead; where both are given they must be the same. When there is none, the instance gets no user data.
	UserDataSecret *LocalSecretReference `json:"userDataSecret,omitempty"`

	// driftPolicy says what becomes of an instance that is found to be other than what was applied: Report, Repair or Ignore.
	// Defaults to Report.
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`
}

// LocalSecretReference names a Secret in the namespace of the object that holds the reference.
type LocalSecretReference struct {
	// name is the Secret's name.
	Name string `json:"name"`
}

// DriftPolicy says what becomes of an instance that somebody else has changed.
type DriftPolicy string

const (
	// DriftReport shows the drift on the Machine and leaves the instance as it is. It is the default.
	DriftReport DriftPolicy = "Report"
	// DriftRepair brings the instance back to its providerSpec as far as that is possible in place, and shows the rest.
	DriftRepair DriftPolicy = "Repair"
	// DriftIgnore lets what others change be.
	DriftIgnore DriftPolicy = "Ignore"
)

// DriftPolicyAnnotation holds the [DriftPolicy] of a Machine whose providerSpec is neither a [TerraformMachineProviderSpec] nor a
// [PulumiMachineProviderSpec].
const DriftPolicyAnnotation = groupName + "/drift-policy"
