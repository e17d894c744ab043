package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Engine names what carries out a module's plan.
type Engine string

const (
	// EngineTerraform is OpenTofu, or Terraform where the manager is configured with it. Its modules are HCL.
	EngineTerraform Engine = "Terraform"
	// EnginePulumi is Pulumi. Its modules are stacks: a program, and variables in HCL.
	EnginePulumi Engine = "Pulumi"
)

// Module is the content of a provider module's module.yaml: what the operator must know of the module besides its HCL, or its program.
type Module struct {
	metav1.TypeMeta `json:",inline"`

	// metadata names the module.
	Metadata ModuleMetadata `json:"metadata"`
	// spec says what the module serves and what it needs.
	Spec ModuleSpec `json:"spec"`
}

// ModuleMetadata names a module.
type ModuleMetadata struct {
	// name is the module's name: a DNS label, the same as the module's folder, unique among the loaded modules of its engine.
	Name string `json:"name"`
}

// ModuleSpec says what a module serves and what it needs.
type ModuleSpec struct {
	// engine is what carries out the module's plan: Terraform or Pulumi. A module for Pulumi is called a stack. Defaults to Terraform.
	Engine Engine `json:"engine,omitempty"`

	// providerSpecs lists the providerSpec kinds that the module serves. No other loaded module may serve the same apiVersion and
	// kind. May be empty: any module is served through [TerraformMachineProviderSpec] as well, any stack through
	// [PulumiMachineProviderSpec], which are not listed.
	ProviderSpecs []ProviderSpecKind `json:"providerSpecs,omitempty"`

	// platform is the type of the platformStatus of OpenShift's Infrastructure (AWS, Azure, GCP, ...) where a providerSpec without a kind is of the
	// first of providerSpecs. No other loaded module may name it. May be empty.
	Platform string `json:"platform,omitempty"`

	// credentials says which Secret holds the credentials and what becomes of its keys. A module that needs none leaves it out.
	Credentials *ModuleCredentials `json:"credentials,omitempty"`

	// rights lists the permissions that the credentials must have, some of them under conditions. They are compared with what the CredentialsRequest of OpenShift grants whose
	// Secret a Machine names; what is certainly missing is reported. Nothing is refused. May be empty.
	Rights []ModuleRights `json:"rights,omitempty"`

	// userData says which Secret holds the user data (what the instance runs at its first boot). When left out, the defaults
	// of its fields hold, and a provider_spec type without that path means that only a [TerraformMachineProviderSpec] or a
	// [PulumiMachineProviderSpec] can name the Secret.
	UserData *ModuleUserData `json:"userData,omitempty"`

	// environment lists environment variables that every run of the module gets: with constant values, or from the cluster's
	// configuration.
	Environment []EnvironmentVariable `json:"environment,omitempty"`

	// place says where an instance is: in which account, project, region, vCenter, at which endpoint. A run that would be in another place than
	// the instance was made in is refused. When left out, nothing is known of places, and nothing that is not found is taken for gone.
	Place []PlacePart `json:"place,omitempty"`

	// addressClaims says which devices take addresses from pools. When left out, none do.
	AddressClaims *ModuleAddressClaims `json:"addressClaims,omitempty"`

	// attachedVolumes says that volumes of pods are attached to the instance so that its deletion should wait until they are detached. When left
	// out, it does not wait.
	AttachedVolumes *ModuleAttachedVolumes `json:"attachedVolumes,omitempty"`

	// errors says what errors of the engine mean. When left out, every error but those of the engine's own validation is retried.
	Errors *moduleErrors `json:"errors,omitempty"`

	// lookup says how an instance that the state lost is found again. It goes with the folder lookup/: both or neither.
	Lookup *ModuleLookup `json:"lookup,omitempty"`

	// adopt says how an instance that something else has made is taken over. It goes with the folder adopt/: both or neither. When left out,
	// no Machine of the module can be adopted.
	Adopt *ModuleAdopt `json:"adopt,omitempty"`

	// inventory says that the module lists the instances of a cluster. It goes with the folder inventory/: both or neither.
	Inventory *moduleInventory `json:"inventory,omitempty"`

	// instanceCheck says how often it is looked whether the instance is still there, between drift checks and at less cost. When left out, only
	// drift checks find that an instance is gone. A stack has none.
	InstanceCheck *ModuleInstanceCheck `json:"instanceCheck,omitempty"`

	// capacity says how large an instance is, which scale from zero reads. When left out, the size is unknown.
	Capacity *ModuleCapacity `json:"capacity,omitempty"`

	// preview says which image and which disks an instance has, which people are shown before it is made. When left out, neither is
	// shown.
	Preview *ModulePreview `json:"preview,omitempty"`

	// defaults lists fields of the providerSpec that are written into a Machine or MachineSet which is created without them, so that
	// its author sees them. An update may then not take away what the module requires. May be empty.
	Defaults []ModuleDefault `json:"defaults,omitempty"`
}

// ModuleDefault fills in one field of the providerSpec. A field is without a value where it is missing or holds null, "", [] or an
// object with fields that hold no more, which is what clients write for a field that nobody has set.
type ModuleDefault struct {
	// path is the field, its parts joined by dots. Parents that are missing are made.
	Path string `json:"path"`
	// value is what is written. In texts, {clusterID} stands for that value of the cluster; a text with a value that is not known is
	// not written.
	Value runtime.RawExtension `json:"value"`
	// byArchitecture holds what is written instead where the cluster's Nodes have that architecture. May be empty.
	ByArchitecture map[string]runtime.RawExtension `json:"byArchitecture,omitempty"`
	// unless lists fields, each a path, any of which keeps the value from being written where the author has given it. May be empty.
	Unless []string `json:"unless,omitempty"`
}

// ProviderSpecKind names a providerSpec kind in one or more versions.
type ProviderSpecKind struct {
	// apiVersions are the versions served, as the providerSpec writes them ("group/version"). At least one.
	APIVersions []string `json:"apiVersions"`
	// kind is the providerSpec's kind.
	Kind string `json:"kind"`
	// fieldNames says how names of fields are compared with those of the type: Exact or CaseInsensitive, as controllers in Go do it. Keys
	// of maps are always exact. Defaults to Exact.
	FieldNames FieldNames `json:"fieldNames,omitempty"`
}

// FieldNames says how names of fields are compared.
type FieldNames string

// The ways to compare names of fields.
const (
	FieldNamesExact           FieldNames = "Exact"
	FieldNamesCaseInsensitive FieldNames = "CaseInsensitive"
)

// ModuleCredentials maps a Secret to what the module's providers read.
type ModuleCredentials struct {
	// path is the field of the providerSpec that names the Secret, its parts joined by dots. The Secret lies in the Machine's
	// namespace. Defaults to "credentialsSecret.name". A module without a kind of its own needs no such field when path is left out.
	Path string `json:"path,omitempty"`
	// keys lists what is read from the Secret. At least one. Other keys of the Secret never reach the engine.
	Keys []CredentialKey `json:"keys"`
}

// CredentialKey maps one key of the credentials Secret to one environment variable: env or file, one of both.
type CredentialKey struct {
	// key is the key in the Secret's data. {workspace.server} in it stands for that field of the providerSpec, a string.
	Key string `json:"key"`
	// path leads to the value in what the key holds, YAML or JSON: names of fields, and positions in lists from "0". Left out, the
	// value is all that the key holds.
	Path []string `json:"path,omitempty"`
	// env is the environment variable that carries the value.
	Env string `json:"env,omitempty"`
	// file is the environment variable that carries the path of a file with the value. Only the engine's user can read the file,
	// and it is removed when the run ends.
	File string `json:"file,omitempty"`
	// optional says that the key may be missing; the variable is not set then. Defaults to false.
	Optional bool `json:"optional,omitempty"`
	// public says that the value is no secret (an endpoint, a region, a CA), so that messages may show it. Defaults to false.
	Public bool `json:"public,omitempty"`
	// unless names another key of the Secret, in whose presence this one is not read. May be empty.
	Unless string `json:"unless,omitempty"`
	// matches lists regular expressions (RE2). The value must consist of nothing but texts that one of them matches, so that a Secret
	// cannot have a provider do more than sign in: a configuration file may name commands to run, or files to send. May be empty, for
	// values that are what they are.
	Matches []string `json:"matches,omitempty"`
	// parts restrict values inside of what the key holds, YAML or JSON. May be empty.
	Parts []CredentialPart `json:"parts,omitempty"`
}

// CredentialPart restricts a value in a document, where there is one.
type CredentialPart struct {
	// path leads to the value: names of fields, positions in lists from "0", and "*" for all of both.
	Path []string `json:"path"`
	// matches lists regular expressions (RE2). The value is a text that one of them matches as a whole.
	Matches []string `json:"matches"`
}

// ModuleRights lists permissions of one cloud.
type ModuleRights struct {
	// provider is the cloud whose words the actions are in: AWS, Azure or GCP.
	Provider string `json:"provider"`
	// actions are what the module does, without wildcards: "ec2:RunInstances", "Microsoft.Compute/virtualMachines/write" or
	// "compute.instances.create". At least one.
	Actions []string `json:"actions"`
	// when is a condition in HCL on var.provider_spec, var.machine and var.cluster, such as "length(var.provider_spec.tags) > 0": the actions are
	// needed where it holds. Defaults to always.
	When string `json:"when,omitempty"`
}

// ModuleUserData says where user data comes from.
type ModuleUserData struct {
	// path is the field of the providerSpec that names the Secret, its parts joined by dots. The Secret lies in the Machine's
	// namespace. Defaults to "userDataSecret.name". A module without a kind of its own needs no such field when path is left out.
	Path string `json:"path,omitempty"`
	// key is the key in the Secret's data. Defaults to "userData".
	Key string `json:"key,omitempty"`
}

// EnvironmentVariable is an environment variable with a constant value, or with one from the cluster's configuration.
type EnvironmentVariable struct {
	// name is the variable's name.
	Name string `json:"name"`
	// value is the variable's value. No secret: it is part of the module's source.
	Value string `json:"value,omitempty"`
	// from names what of the cluster's configuration is the variable's value, instead of value. Where the cluster does not say, the
	// variable is not set.
	From EnvironmentSource `json:"from,omitempty"`
}

// EnvironmentSource names a part of a cluster's configuration, as OpenShift keeps it: one of the constants, or
// "serviceEndpoint.PLATFORM.SERVICE".
type EnvironmentSource string

const (
	// FromCABundleFile is the path of a file with the certificate authorities to trust: those of the manager's system, and the
	// cluster's. There is none where the cluster names no authority.
	FromCABundleFile EnvironmentSource = "caBundleFile"
	// FromAzureCloud is the cloud of Azure that the cluster is in: public, usgovernment, china or german. There is none on Azure
	// Stack Hub.
	FromAzureCloud EnvironmentSource = "azureCloud"
	// FromAzureResourceManagerHost is the host name of the resource manager of an Azure Stack Hub.
	FromAzureResourceManagerHost EnvironmentSource = "azureResourceManagerHost"
	// FromPrismCentralAddress is where the cluster's Prism Central is reached, which manages a Nutanix infrastructure. An address of IPv6 is in brackets.
	FromPrismCentralAddress EnvironmentSource = "prismCentralAddress"
	// FromPrismCentralPort is the port of the same.
	FromPrismCentralPort EnvironmentSource = "prismCentralPort"
	// FromServiceEndpoint stands before the platform (aws, ibmcloud or powervs) and the name of a service, as the cluster's
	// Infrastructure spells it; for example serviceEndpoint.aws.ec2 is the URL at which EC2 is reached instead of the usual one.
	FromServiceEndpoint EnvironmentSource = "serviceEndpoint."
)

// ModuleLookup says how to read the outcome of the module's lookup/ folder, whose import blocks find an instance that the
// state lost.
type ModuleLookup struct {
	// absent lists regular expressions (RE2), any of which matches an error of the engine that says that the instance to
	// import does not exist. The engine's own message for that is known and needs no entry. May be empty, for example when
	// the import block's for_each is empty when nothing is found.
	Absent []string `json:"absent,omitempty"`
	// settleSeconds is how long the infrastructure may take to show what a run asked of it before the run died: a lookup that finds nothing
	// counts only when it was made that much later. 0 to 3600; defaults to 60.
	SettleSeconds *int64 `json:"settleSeconds,omitempty"`
}

// ModuleAdopt says how to read the outcome of the module's adopt/ folder, whose import blocks bring an instance that something else has made
// into the state, with what belongs to it.
type ModuleAdopt struct {
	// absent lists regular expressions (RE2), any of which matches an error of the engine that says that the instance to adopt does
	// not exist. The engine's own message for that is known and needs no entry. May be empty.
	Absent []string `json:"absent,omitempty"`
	// creates lists types of resources that an adoption may create, because they cannot be imported and creating them again changes
	// nothing. Other resources must be imported, or be in the state only, as terraform_data is. May be empty.
	Creates []string `json:"creates,omitempty"`
}

// moduleInventory says that the module's inventory/ folder lists the instances of a cluster. It has no fields.
type moduleInventory struct{}

// ModuleInstanceCheck says how often it is looked whether the instance is still there. A run then has the module's variables and provider blocks
// and nothing else of it, and reads the one resource that is the instance.
type ModuleInstanceCheck struct {
	// intervalSeconds is the time between two looks at an instance, a tenth more or less. 60 to 86400.
	IntervalSeconds int64 `json:"intervalSeconds"`
}

// ModuleAttachedVolumes says how long volumes are waited for that are attached to the Node of a Machine whose instance is about to be deleted. What is
// attached after that stays whole all the same: the module's destroy detaches it.
type ModuleAttachedVolumes struct {
	// waitSeconds is how long is waited at most, from the end of the drain on. 1 to 86400.
	WaitSeconds int64 `json:"waitSeconds"`
}

// ModuleCapacity says what an instance offers, from its providerSpec alone. A providerSpec either names an instance type, which
// catalogues describe, or states the size itself in fields. Where a module has both, what a field states wins.
type ModuleCapacity struct {
	// path is the field of the providerSpec that names the instance type, its parts joined by dots. Defaults to "instanceType".
	// Read only where there is a catalogue.
	Path string `json:"path,omitempty"`
	// instanceTypes lists known instance types, each name once. May be empty.
	InstanceTypes []InstanceTypeCapacity `json:"instanceTypes,omitempty"`
	// instanceTypesFile names a file beside module.yaml with an [InstanceTypes], for a catalogue too long for module.yaml. The
	// file is no part of the module's digest, so that a new catalogue changes no Machine.
	InstanceTypesFile string `json:"instanceTypesFile,omitempty"`
	// fields says which fields of the providerSpec state the size. Without a catalogue, cpu and memory are required.
	Fields *CapacityFields `json:"fields,omitempty"`
}

// CapacityFields says which fields of a providerSpec state the size of the instance. Each is a path, its parts joined by dots.
type CapacityFields struct {
	// cpu lists the fields whose product is the number of processors, for example sockets and cores per socket. A fraction is
	// rounded down.
	CPU []string `json:"cpu,omitempty"`
	// memory is the field with the memory: a Kubernetes quantity ("16Gi"), or a number in memoryUnit.
	Memory string `json:"memory,omitempty"`
	// memoryUnit is the suffix of a Kubernetes quantity that a number in the field memory counts, for example "Mi". Defaults to
	// bytes.
	MemoryUnit string `json:"memoryUnit,omitempty"`
	// gpu is the field with the number of graphics processors. When left out, there are none.
	GPU string `json:"gpu,omitempty"`
	// architecture is the field with the processor's architecture as the label kubernetes.io/arch writes it. When left out, it
	// is "amd64".
	Architecture string `json:"architecture,omitempty"`
}

// InstanceTypes is the content of the file that spec.capacity.instanceTypesFile names.
type InstanceTypes struct {
	metav1.TypeMeta `json:",inline"`

	// instanceTypes lists known instance types, each name once. At least one.
	InstanceTypes []InstanceTypeCapacity `json:"instanceTypes"`
}

// InstanceTypeCapacity is what an instance of one type offers.
type InstanceTypeCapacity struct {
	// name is the instance type's name.
	Name string `json:"name"`
	// cpu is the number of processors, for example "4".
	CPU resource.Quantity `json:"cpu"`
	// memory is the memory in bytes, for example "16Gi".
	Memory resource.Quantity `json:"memory"`
	// gpu is the number of graphics processors. Defaults to 0.
	GPU int64 `json:"gpu,omitempty"`
	// architecture is the processor's architecture as the label kubernetes.io/arch writes it. Defaults to "amd64".
	Architecture string `json:"architecture,omitempty"`
}
