package module

// ClusterValues are what is known of the cluster that Machines belong to, by name: one of [ClusterValueNames]. A value that is not known is
// missing, or empty.
type ClusterValues map[string]string

// The values that module.yaml may use.
const (
	// ValueArchitecture is the processor architecture of the cluster's own Nodes, as the label kubernetes.io/arch writes it.
	ValueArchitecture = "architecture"
	// ValueClusterID is the name of the cluster's infrastructure. A Machine that names its cluster wins.
	ValueClusterID = "clusterID"
	// ValueNamespace is the namespace that the Machine is in.
	ValueNamespace = "namespace"
	// ValueNetworkResourceGroup is the resource group of the cluster's network, on Azure.
	ValueNetworkResourceGroup = "networkResourceGroup"
	// ValuePlatform is the PlatformType of the cluster's Infrastructure, for example AWS.
	ValuePlatform = "platform"
	// ValueProject is the project that the cluster is in, on Google Cloud.
	ValueProject = "project"
	// ValueRegion is the cloud's region that the cluster is in.
	ValueRegion = "region"
	// ValueResourceGroup is the cluster's resource group, on Azure.
	ValueResourceGroup = "resourceGroup"
)

// ClusterValueNames returns the names of all values, sorted.
func ClusterValueNames() []string {
	return []string{ValueArchitecture, ValueClusterID, ValueNamespace, ValueNetworkResourceGroup, ValuePlatform, ValueProject, ValueRegion, ValueResourceGroup}
}

// PerMachine reports whether each Machine has a value of its own by this name, so that it need not be set for the cluster.
func PerMachine(name string) bool { return name == ValueClusterID || name == ValueNamespace }
