// Package v1alpha1 holds the types of this project: the files that describe a provider module, the
// providerSpecs for any module, and the status that the Terraform actuator writes into a Machine.
// Machine, MachineSet and MachineHealthCheck are types of github.com/openshift/api.
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

const (
	// groupName is the API group of every type in this package.
	groupName = "machine-iac.io"
	// version is the version of every type in this package.
	version = "v1alpha1"
	// TerraformMachineProviderSpecKind is the kind of [TerraformMachineProviderSpec].
	TerraformMachineProviderSpecKind = "TerraformMachineProviderSpec"
	// PulumiMachineProviderSpecKind is the kind of [PulumiMachineProviderSpec].
	PulumiMachineProviderSpecKind = "PulumiMachineProviderSpec"
	// TerraformMachineProviderStatusKind is the kind of [TerraformMachineProviderStatus].
	TerraformMachineProviderStatusKind = "TerraformMachineProviderStatus"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: groupName, Version: version}
