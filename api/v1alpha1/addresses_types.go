package v1alpha1

// ModuleAddressClaims says where a providerSpec names address pools (IPAddressClaims of ipam.cluster.x-k8s.io), and
// where the addresses go. The operator creates a claim per pool before the instance.
type ModuleAddressClaims struct {
	// devices is the providerSpec field with the network devices: a list of objects.
	Devices string `json:"devices"`
	// pools is a device's list of pools: objects with group, resource and name.
	Pools string `json:"pools"`
	// addresses is a device's list of strings that receives the addresses with prefix lengths.
	Addresses string `json:"addresses"`
	// gateway is a device's string that receives the gateway of the last address that has one. Optional.
	Gateway string `json:"gateway,omitempty"`
}
