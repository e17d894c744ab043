package module

import "slices"

// Facts are what is known of the cluster that Machines belong to, by name: one of [FactNames]. What is not known is not in it, or empty.
type Facts map[string]string

// The facts that module.yaml may use.
const (
	// FactArchitecture is the processor architecture of the cluster's own Nodes, as the label kubernetes.io/arch writes it.
	FactArchitecture = "architecture"
	// FactClusterID is the name of the cluster's infrastructure. A Machine that names its cluster wins.
	FactClusterID = "clusterID"
	// FactNamespace is the namespace that the Machine is in.
	FactNamespace = "namespace"
	// FactNetworkResourceGroup is the resource group of the cluster's network, on Azure.
	FactNetworkResourceGroup = "networkResourceGroup"
	// FactProject is the project that the cluster is in, on Google Cloud.
	FactProject = "project"
	// FactRegion is the cloud's region that the cluster is in.
	FactRegion = "region"
	// FactResourceGroup is the cluster's resource group, on Azure.
	FactResourceGroup = "resourceGroup"
)

// FactNames answers the names of all facts that there are, sorted.
func FactNames() []string {
	return []string{FactArchitecture, FactClusterID, FactNamespace, FactNetworkResourceGroup, FactProject, FactRegion, FactResourceGroup}
}

// OfMachine tells whether the fact is each Machine's own: nobody need tell it.
func OfMachine(fact string) bool { return fact == FactClusterID || fact == FactNamespace }

// isFact tells whether there is a fact of the name.
func isFact(name string) bool { return slices.Contains(FactNames(), name) }
