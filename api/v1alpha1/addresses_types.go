package v1alpha1

// ModuleAddressClaims says where a providerSpec names pools of addresses (IPAddressClaims of ipam.cluster.x-k8s.io), and where the addresses
// that are given from them go. The operator makes a claim for each pool before the instance is made.
type ModuleAddressClaims struct {
	// devices is the field of the providerSpec that lists the network devices, its parts joined by dots: a list of objects.
	Devices string `json:"devices"`
	// pools is the field of a device that lists pools: objects with the fields group, resource and name, all strings.
	Pools string `json:"pools"`
	// addresses is the field of a device that the addresses are added to, with the length of their prefix: a list of strings.
	Addresses string `json:"addresses"`
	// gateway is the field of a device that becomes the gateway of the last address that has one: a string. May be empty, and then no
	// gateway is handed on.
	Gateway string `json:"gateway,omitempty"`
}
