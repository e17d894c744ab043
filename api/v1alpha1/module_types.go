package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Engine names the tool that executes a module's plan.
type Engine string

const (
	// EngineTerraform is OpenTofu, or Terraform if the manager is configured with it. Its modules
	// are written in HCL.
	EngineTerraform Engine = "Terraform"
	// EnginePulumi is Pulumi. Its modules are stacks: a program, and variables in HCL.
	EnginePulumi Engine = "Pulumi"
)

// Module is the content of module.yaml: what the operator needs to know about a module besides its HCL or program.
type Module struct {
	metav1.TypeMeta `json:",inline"`

	// metadata names the module.
	Metadata ModuleMetadata `json:"metadata"`
	// spec describes what the module serves and needs.
	Spec ModuleSpec `json:"spec"`
}

// ModuleMetadata names a module.
type ModuleMetadata struct {
	// name is a DNS label, equal to the module's folder, and unique among the loaded modules of its engine.
	Name string `json:"name"`
}

// ModuleSpec describes what a module serves and needs.
type ModuleSpec struct {
	// engine runs the module: Terraform, or Pulumi for a stack. Defaults to Terraform.
	Engine Engine `json:"engine,omitempty"`

	// providerSpecs lists the served kinds. No other loaded module may serve the same apiVersion and kind. Every module
	// is also served through [TerraformMachineProviderSpec], every stack through [PulumiMachineProviderSpec].
	ProviderSpecs []ProviderSpecKind `json:"providerSpecs,omitempty"`

	// platform is the Infrastructure's platformStatus.type (AWS, Azure, GCP, ...) on which a providerSpec without a
	// kind is of the first kind in providerSpecs. At most one loaded module names it.
	Platform string `json:"platform,omitempty"`

	// credentials maps keys of the credentials Secret to what the providers read.
	Credentials *ModuleCredentials `json:"credentials,omitempty"`

	// rights lists permissions that the credentials need. Those missing in OpenShift's CredentialsRequest are reported.
	Rights []ModuleRights `json:"rights,omitempty"`

	// userData names the Secret with the user data. Without it and a field at the default path, only a
	// [TerraformMachineProviderSpec] or [PulumiMachineProviderSpec] can name the Secret.
	UserData *ModuleUserData `json:"userData,omitempty"`

	// environment lists environment variables for every run.
	Environment []EnvironmentVariable `json:"environment,omitempty"`

	// place identifies where an instance is. A run in another place is refused. Without it, a missing instance is never
	// considered gone.
	Place []PlacePart `json:"place,omitempty"`

	// addressClaims describes devices that take addresses from pools.
	AddressClaims *ModuleAddressClaims `json:"addressClaims,omitempty"`

	// attachedVolumes makes a deletion wait until volumes of Pods are detached from the Node.
	AttachedVolumes *ModuleAttachedVolumes `json:"attachedVolumes,omitempty"`

	// errors classifies errors of the engine. Without it, only the engine's own validation errors are final.
	Errors *moduleErrors `json:"errors,omitempty"`

	// identity lists where resources carry their Machine's UID. Required for the instance's type in a module with a
	// lookup. Other resources must refer by ID to a listed one.
	Identity []ResourceIdentity `json:"identity,omitempty"`

	// providerStatus is the platform's type of status.providerStatus. Defaults to [TerraformMachineProviderStatus].
	ProviderStatus *ModuleProviderStatus `json:"providerStatus,omitempty"`

	// brokenStates lists values of the output instance_state that an instance never recovers from. After an interrupted
	// create, such an instance is replaced.
	BrokenStates []string `json:"brokenStates,omitempty"`

	// lookup goes with the folder lookup/, which finds an instance that the state lacks.
	Lookup *ModuleLookup `json:"lookup,omitempty"`

	// adopt goes with the folder adopt/, which imports an instance that something else created.
	Adopt *ModuleAdopt `json:"adopt,omitempty"`

	// disruptive lists in-place changes that stop or restart a running instance or take a disk away. They are refused,
	// except while the instance is being destroyed.
	Disruptive []DisruptiveChange `json:"disruptive,omitempty"`

	// partOfInstance lists resource types that end with the instance, such as tags. A destroy drops them from the state
	// and destroys only the instance.
	PartOfInstance []string `json:"partOfInstance,omitempty"`

	// inventory goes with the folder inventory/, which lists a cluster's instances.
	Inventory *moduleInventory `json:"inventory,omitempty"`

	// instanceCheck sets how often to look whether the instance still exists. Not for stacks.
	InstanceCheck *ModuleInstanceCheck `json:"instanceCheck,omitempty"`

	// capacity is the instance's size, for scaling from zero.
	Capacity *ModuleCapacity `json:"capacity,omitempty"`

	// preview names image and disks in previews.
	Preview *ModulePreview `json:"preview,omitempty"`

	// defaults lists fields to write into Machines and MachineSets that are created without them.
	Defaults []ModuleDefault `json:"defaults,omitempty"`

	// featureGates maps fields of the providerSpec, joined by dots, to OpenShift's feature gates. While a gate is
	// disabled, new objects that set its field are rejected.
	FeatureGates map[string]string `json:"featureGates,omitempty"`
}

// ModuleDefault fills in one field of the providerSpec. A field is unset if it is missing or holds null, "", [] or an
// object of unset fields, which clients write for a field that nobody set.
type ModuleDefault struct {
	// path is the field, joined by dots. Missing parents are created.
	Path string `json:"path"`
	// value is written. Texts may contain cluster values such as {clusterID}; if one is unknown, nothing is written.
	Value runtime.RawExtension `json:"value"`
	// byArchitecture replaces value where the cluster's Nodes have that architecture.
	ByArchitecture map[string]runtime.RawExtension `json:"byArchitecture,omitempty"`
	// unless lists fields that suppress the default if the author set one.
	Unless []string `json:"unless,omitempty"`
}

// ProviderSpecKind names a providerSpec kind in one or more versions.
type ProviderSpecKind struct {
	// apiVersions lists the served versions, as group/version. At least one.
	APIVersions []string `json:"apiVersions"`
	// kind is the providerSpec's kind.
	Kind string `json:"kind"`
	// aliases lists wrong names of the kind that are in common use. They are accepted with a warning.
	Aliases []string `json:"aliases,omitempty"`
	// fieldAliases maps other names of top-level fields to the module's. They are accepted with a warning.
	FieldAliases map[string]string `json:"fieldAliases,omitempty"`
	// fieldNames is Exact or CaseInsensitive, as Go controllers decode. Map keys are always exact. Defaults to Exact.
	FieldNames FieldNames `json:"fieldNames,omitempty"`
}

// FieldNames says how field names are matched.
type FieldNames string

// The ways to match field names.
const (
	FieldNamesExact           FieldNames = "Exact"
	FieldNamesCaseInsensitive FieldNames = "CaseInsensitive"
)

// ModuleCredentials maps a Secret to what the providers read.
type ModuleCredentials struct {
	// path is the providerSpec field that names the Secret in the Machine's namespace. Defaults to
	// "credentialsSecret.name". Without a kind of its own, a module that omits path needs no such field.
	Path string `json:"path,omitempty"`
	// keys lists what is read from the Secret; other keys never reach the engine. At least one.
	Keys []CredentialKey `json:"keys"`
}

// CredentialKey maps one key of the credentials Secret to one environment variable: either env or file.
type CredentialKey struct {
	// key is the Secret's key. {workspace.server} in it stands for that string field of the providerSpec.
	Key string `json:"key"`
	// path leads to a value inside the key's YAML or JSON: field names, and list positions from "0".
	Path []string `json:"path,omitempty"`
	// env is the variable that carries the value.
	Env string `json:"env,omitempty"`
	// file is the variable that carries the path of a temporary file with the value.
	File string `json:"file,omitempty"`
	// optional allows a missing key; the variable is then unset.
	Optional bool `json:"optional,omitempty"`
	// public marks a value that messages may show, such as an endpoint.
	Public bool `json:"public,omitempty"`
	// unless names another key that suppresses this one.
	Unless string `json:"unless,omitempty"`
	// matches lists RE2 expressions. The value must consist of matches only.
	Matches []string `json:"matches,omitempty"`
	// parts restricts values inside the key's YAML or JSON.
	Parts []CredentialPart `json:"parts,omitempty"`
}

// CredentialPart restricts a value in a document, if it exists.
type CredentialPart struct {
	// path leads to the value: field names, list positions from "0", and "*" for all.
	Path []string `json:"path"`
	// matches lists RE2 expressions, one of which must match the whole value.
	Matches []string `json:"matches"`
}

// ModuleRights lists permissions of one cloud.
type ModuleRights struct {
	// provider is AWS, Azure or GCP.
	Provider string `json:"provider"`
	// actions lists permissions without wildcards, such as "ec2:RunInstances",
	// "Microsoft.Compute/virtualMachines/write" or "compute.instances.create". At least one.
	Actions []string `json:"actions"`
	// when is an HCL condition on var.provider_spec, var.machine and var.cluster. Defaults to always.
	When string `json:"when,omitempty"`
}

// ModuleUserData describes where user data comes from.
type ModuleUserData struct {
	// path is the providerSpec field that names the Secret in the Machine's namespace. Defaults to
	// "userDataSecret.name". Without a kind of its own, a module that omits path needs no such field.
	Path string `json:"path,omitempty"`
	// key is the Secret's key. Defaults to "userData".
	Key string `json:"key,omitempty"`
}

// EnvironmentVariable has a constant value, or one from the cluster's configuration.
type EnvironmentVariable struct {
	// name is the variable's name.
	Name string `json:"name"`
	// value is a constant; never a secret, because it is part of the module.
	Value string `json:"value,omitempty"`
	// from is a part of the cluster's configuration. If the cluster does not set it, the variable is unset.
	From EnvironmentSource `json:"from,omitempty"`
}

// EnvironmentSource names a part of OpenShift's cluster configuration: a constant below, or
// "serviceEndpoint.PLATFORM.SERVICE".
type EnvironmentSource string

const (
	// FromCABundleFile is the path of a file with the system's and the cluster's certificate authorities. Unset if the
	// cluster adds none.
	FromCABundleFile EnvironmentSource = "caBundleFile"
	// FromAzureCloud is public, usgovernment, china or german. Unset on Azure Stack Hub.
	FromAzureCloud EnvironmentSource = "azureCloud"
	// FromAzureResourceManagerHost is the host name of an Azure Stack Hub's resource manager.
	FromAzureResourceManagerHost EnvironmentSource = "azureResourceManagerHost"
	// FromPrismCentralAddress is the address of Nutanix's Prism Central. IPv6 addresses are in brackets.
	FromPrismCentralAddress EnvironmentSource = "prismCentralAddress"
	// FromPrismCentralPort is Prism Central's port.
	FromPrismCentralPort EnvironmentSource = "prismCentralPort"
	// FromServiceEndpoint is a prefix for the platform (aws, ibmcloud or powervs) and the Infrastructure's service name:
	// serviceEndpoint.aws.ec2 is the overridden URL of EC2.
	FromServiceEndpoint EnvironmentSource = "serviceEndpoint."
)

// ResourceIdentity says where resources of one type carry the UID of their Machine.
type ResourceIdentity struct {
	// type is the resource type as the engine reports it: "aws_instance", or "kubectl:index/manifest:Manifest" in a
	// stack.
	Type string `json:"type"`
	// machineUID is where they carry the Machine's UID.
	MachineUID IdentityField `json:"machineUID"`
	// installation is where they carry the UID of the operator's installation, if they do.
	Installation *IdentityField `json:"installation,omitempty"`
}

// IdentityField is a text of a resource, as its provider reads it from the infrastructure.
type IdentityField struct {
	// path leads to the text: names, and list positions from "0". YAML and JSON texts on the way are decoded.
	Path []string `json:"path"`
	// pattern is an RE2 expression that matches the whole text and captures the UID in its one group. Defaults to the
	// whole text.
	Pattern string `json:"pattern,omitempty"`
}

// ModuleProviderStatus names a type whose fields clients expect in status.providerStatus. The fields of
// [TerraformMachineProviderStatus] are there as well.
type ModuleProviderStatus struct {
	// apiVersion is that of the type.
	APIVersion string `json:"apiVersion"`
	// kind is that of the type.
	Kind string `json:"kind"`
	// fields maps fields of the type to the outputs of the module with their values. A null value is left out.
	Fields map[string]string `json:"fields,omitempty"`
}

// ModuleLookup interprets the outcome of the lookup/ folder, whose import blocks find an instance that the state lost.
type ModuleLookup struct {
	// absent lists RE2 expressions for errors that mean that the instance does not exist. The engine's own message
	// needs no entry.
	Absent []string `json:"absent,omitempty"`
	// settleSeconds is how long the infrastructure may take to show what a dead run requested. 0 to 3600; defaults to
	// 60.
	SettleSeconds *int64 `json:"settleSeconds,omitempty"`
}

// ModuleAdopt interprets the outcome of the adopt/ folder, whose import blocks bring an existing instance and its parts
// into the state.
type ModuleAdopt struct {
	// absent lists RE2 expressions for errors that mean that the instance does not exist. The engine's own message
	// needs no entry.
	Absent []string `json:"absent,omitempty"`
	// creates lists resource types that an adoption may create, because creating them again changes nothing.
	// terraform_data needs no entry.
	Creates []string `json:"creates,omitempty"`
	// byName says that adopt/ searches by the Machine's name and its cluster's mark if var.adopt is empty. Machines of
	// the control plane and from before the operator are then searched before an instance is created.
	ByName bool `json:"byName,omitempty"`
}

// DisruptiveChange says what an in-place change of attributes does to a running instance.
type DisruptiveChange struct {
	// type is the resource type as the engine reports it: "aws_instance", or "aws:index/instance:Instance" in a stack.
	Type string `json:"type"`
	// attributes lists top-level attributes and blocks: "instance_type", or "instanceType" in a stack. Include ignored
	// ones: an import may differ in them. At least one.
	Attributes []string `json:"attributes"`
	// effect completes the sentence after the attribute's name: "stops and starts the instance".
	Effect string `json:"effect"`
}

// moduleInventory says that the inventory/ folder lists a cluster's instances. It has no fields.
type moduleInventory struct{}

// ModuleInstanceCheck sets how often to look whether the instance still exists. The run has the module's variables and
// provider blocks, and reads the instance alone.
type ModuleInstanceCheck struct {
	// intervalSeconds is the time between two looks, plus or minus a tenth. 60 to 86400.
	IntervalSeconds int64 `json:"intervalSeconds"`
}

// ModuleAttachedVolumes bounds the wait for volumes attached to the Node before its instance is deleted. The module's
// destroy must detach the others intact.
type ModuleAttachedVolumes struct {
	// waitSeconds is the longest wait after the drain. 1 to 86400.
	WaitSeconds int64 `json:"waitSeconds"`
}

// ModuleCapacity is what an instance offers, from its providerSpec alone: by instance type, or from fields. Fields win.
type ModuleCapacity struct {
	// path is the providerSpec field with the instance type. Defaults to "instanceType".
	Path string `json:"path,omitempty"`
	// instanceTypes lists known instance types, each once.
	InstanceTypes []InstanceTypeCapacity `json:"instanceTypes,omitempty"`
	// instanceTypesFile names a file beside module.yaml with [InstanceTypes]. It is not part of the digest, so a new
	// catalogue changes no Machine.
	InstanceTypesFile string `json:"instanceTypesFile,omitempty"`
	// fields names providerSpec fields with the size. Required without a catalogue: cpu and memory.
	Fields *CapacityFields `json:"fields,omitempty"`
	// labels maps keys of Node labels to templates such as "{placement.region}". {lower:location} converts a value to
	// lower case.
	Labels map[string]string `json:"labels,omitempty"`
}

// CapacityFields names the providerSpec fields with the size, joined by dots.
type CapacityFields struct {
	// cpu lists fields whose product is the number of processors, such as sockets and cores. Fractions are rounded
	// down.
	CPU []string `json:"cpu,omitempty"`
	// memory is the field with the memory: a quantity ("16Gi"), or a number in memoryUnit.
	Memory string `json:"memory,omitempty"`
	// memoryUnit is the unit of a number in memory, such as "Mi". Defaults to bytes.
	MemoryUnit string `json:"memoryUnit,omitempty"`
	// gpu is the field with the number of GPUs. Defaults to none.
	GPU string `json:"gpu,omitempty"`
	// attachedGPUs is a number field of a list's objects, such as "gpus.count". Its sum is added to the GPUs.
	AttachedGPUs string `json:"attachedGPUs,omitempty"`
	// architecture is the field with the architecture, as in the label kubernetes.io/arch. Defaults to "amd64".
	Architecture string `json:"architecture,omitempty"`
}

// InstanceTypes is the content of the file that spec.capacity.instanceTypesFile names.
type InstanceTypes struct {
	metav1.TypeMeta `json:",inline"`

	// instanceTypes lists known instance types, each once. At least one.
	InstanceTypes []InstanceTypeCapacity `json:"instanceTypes"`
}

// InstanceTypeCapacity is the capacity of one instance type.
type InstanceTypeCapacity struct {
	// name is the instance type.
	Name string `json:"name"`
	// cpu is the number of processors, such as "4".
	CPU resource.Quantity `json:"cpu"`
	// memory is the memory in bytes, such as "16Gi".
	Memory resource.Quantity `json:"memory"`
	// gpu is the number of GPUs. Defaults to 0.
	GPU int64 `json:"gpu,omitempty"`
	// architecture is as in the label kubernetes.io/arch. Defaults to "amd64".
	Architecture string `json:"architecture,omitempty"`
}
