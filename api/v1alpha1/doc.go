// Package v1alpha1 holds the types that this project owns: the files that describe a provider module, the providerSpecs that work
// with any module, and the status that the Terraform actuator writes into a Machine. Machine, MachineSet and MachineHealthCheck are
// types of github.com/openshift/api.
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

// GroupVersion is group and version of every type in this package, as apiVersion writes them.
var GroupVersion = schema.GroupVersion{Group: groupName, Version: version}
