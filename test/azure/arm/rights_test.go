package arm_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/test/azure/arm"
	"github.com/machine-iac/machine-iac-operator/test/rights"
)

func TestRequestsNeedTheActionsOfAzure(t *testing.T) {
	const compute, network = arm.Group + "/providers/Microsoft.Compute/", arm.Group + "/providers/Microsoft.Network/"
	const machine, nic = compute + "virtualMachines/one", network + "networkInterfaces/one-nic"
	const identity = arm.Group + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
	for name, tc := range map[string]struct {
		method, path, body string
		want               []string
	}{
		"a list": {
			method: http.MethodGet, path: "/subscriptions/" + arm.Subscription + "/resources",
			want: []string{"Microsoft.Resources/subscriptions/resources/read"},
		},
		"a resource group": {
			method: http.MethodGet, path: arm.Group, want: []string{"Microsoft.Resources/subscriptions/resourceGroups/read"},
		},
		"a part of a resource": {
			method: http.MethodGet, path: machine + "/instanceView",
			want: []string{"Microsoft.Compute/virtualMachines/instanceView/read"},
		},
		"a pool": {
			method: http.MethodGet, path: network + "loadBalancers/l/backendAddressPools/p",
			want: []string{"Microsoft.Network/loadBalancers/backendAddressPools/read"},
		},
		"an action": {
			method: http.MethodPost, path: machine + "/deallocate",
			want: []string{"Microsoft.Compute/virtualMachines/deallocate/action"},
		},
		"a delete": {method: http.MethodDelete, path: disk, want: []string{"Microsoft.Compute/disks/delete"}},
		"an interface, which names itself": {
			method: http.MethodPut, path: nic,
			body: `{"id":"` + nic + `","properties":{"networkSecurityGroup":{"id":"` + network + `networkSecurityGroups/g"},
				"ipConfigurations":[{"name":"i","properties":{"subnet":{"id":"` + network + `virtualNetworks/v/subnets/s"},
				"publicIPAddress":{"id":"` + network + `publicIPAddresses/a"},
				"loadBalancerBackendAddressPools":[{"id":"` + network + `loadBalancers/l/backendAddressPools/p"}],
				"applicationSecurityGroups":[{"id":"` + network + `applicationSecurityGroups/g"}]}}]}}`,
			want: []string{
				"Microsoft.Network/applicationSecurityGroups/joinIpConfiguration/action",
				"Microsoft.Network/loadBalancers/backendAddressPools/join/action", "Microsoft.Network/networkInterfaces/write",
				"Microsoft.Network/networkSecurityGroups/join/action", "Microsoft.Network/publicIPAddresses/join/action",
				"Microsoft.Network/virtualNetworks/subnets/join/action",
			},
		},
		"a virtual machine": {
			method: http.MethodPut, path: machine,
			body: `{"identity":{"userAssignedIdentities":{"` + identity + `":{}}},"properties":{
				"capacityReservation":{"capacityReservationGroup":{"id":"` + compute + `capacityReservationGroups/c"}},
				"networkProfile":{"networkInterfaces":[{"id":"` + nic + `"}]},
				"storageProfile":{"imageReference":{"id":"` + compute + `galleries/g/images/i/versions/latest"},
				"osDisk":{"managedDisk":{"diskEncryptionSet":{"id":"` + compute + `diskEncryptionSets/d"}}}}}}`,
			want: []string{
				"Microsoft.Compute/capacityReservationGroups/deploy/action", "Microsoft.Compute/diskEncryptionSets/read",
				"Microsoft.Compute/galleries/images/versions/read", "Microsoft.Compute/virtualMachines/write",
				"Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", "Microsoft.Network/networkInterfaces/join/action",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			guard := &rights.Guard{}
			guard.Grant(tc.want)
			_, a := open(t, arm.Options{Allowed: guard.Allows})
			if status, _ := a.ask(tc.method, tc.path, tc.body); status == http.StatusForbidden {
				t.Error("it is refused")
			}
			if diff := cmp.Diff(tc.want, guard.Called()); diff != "" {
				t.Errorf("the actions (-want +got):\n%s", diff)
			}
			for at := range tc.want {
				guard.Grant(slices.Delete(slices.Clone(tc.want), at, at+1))
				if status, _ := a.ask(tc.method, tc.path, tc.body); status != http.StatusForbidden {
					t.Errorf("without %s: %d, want %d", tc.want[at], status, http.StatusForbidden)
				}
			}
		})
	}
}
