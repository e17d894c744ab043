package module

// ClusterValues are facts about the Machines' cluster, by one of [ClusterValueNames]. Unknown
// values are missing or empty.
type ClusterValues map[string]string

// The values that module.yaml may use.
const (
	// ValueArchitecture is the CPU architecture of the cluster's own Nodes, as in the label
	// kubernetes.io/arch.
	ValueArchitecture = "architecture"
	// ValueClusterID is the infrastructure name of the cluster. The label of a Machine takes
	// precedence.
	ValueClusterID = "clusterID"
	// ValueNamespace is the namespace of the Machine.
	ValueNamespace = "namespace"
	// ValueNetworkResourceGroup is the resource group of the cluster's network, on Azure.
	ValueNetworkResourceGroup = "networkResourceGroup"
	// ValuePlatform is the PlatformType of the cluster's Infrastructure, for example AWS.
	ValuePlatform = "platform"
	// ValueProject is the cluster's project on Google Cloud.
	ValueProject = "project"
	// ValueRegion is the cluster's cloud region.
	ValueRegion = "region"
	// ValueResourceGroup is the cluster's resource group, on Azure.
	ValueResourceGroup = "resourceGroup"
)

// ClusterValueNames returns the names of all values, sorted.
func ClusterValueNames() []string {
	return []string{ValueArchitecture, ValueClusterID, ValueNamespace, ValueNetworkResourceGroup, ValuePlatform,
		ValueProject, ValueRegion, ValueResourceGroup}
}

// PerMachine reports whether each Machine has its own value of this name, so that it need not be
// set for the cluster.
func PerMachine(name string) bool { return name == ValueClusterID || name == ValueNamespace }
