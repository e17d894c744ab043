package modules_test

import (
	"os"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"

	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// TestOpenStackTakesWhatTheInstallerWritesAndReportsWhatHasNoEffect changes the MachineSet that the installer writes. The fields are those that
// OpenShift's provider takes without using them.
func TestOpenStackTakesWhatTheInstallerWritesAndReportsWhatHasNoEffect(t *testing.T) {
	openstack, err := load.Module(os.DirFS("openstack"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		// fields take the place of those of the providerSpec.
		fields string
		// wantWarning is the path of the field without effect; none when empty.
		wantWarning string
	}{
		"the group of today":                {`{"apiVersion":"machine.openshift.io/v1alpha1"}`, ""},
		"the group of old":                  {`{"apiVersion":"openstackproviderconfig.openshift.io/v1alpha1"}`, ""},
		"a subnet of the installer's":       {`{"primarySubnet":"s"}`, "primarySubnet"},
		"a name for SSH":                    {`{"sshUserName":"core"}`, "sshUserName"},
		"a type of the root volume":         {`{"image":"","rootVolume":{"diskSize":1,"sourceUUID":"rhcos","sourceType":"image"}}`, "rootVolume.sourceType"},
		"a fixed address of a network":      {`{"networks":[{"uuid":"n","fixedIp":"10.0.0.9"}]}`, "networks[0].fixedIp"},
		"the status of a network":           {`{"networks":[{"filter":{"name":"n","status":"ACTIVE"}}]}`, "networks[0].filter.status"},
		"the network of a subnet's filter":  {`{"networks":[{"subnets":[{"filter":{"name":"s","networkId":"n"}}]}]}`, "networks[0].subnets[0].filter.networkId"},
		"a limit of security groups":        {`{"securityGroups":[{"name":"g","filter":{"limit":1}}]}`, "securityGroups[0].filter.limit"},
		"the host of a port":                {`{"ports":[{"networkID":"n","hostID":"h"}]}`, "ports[0].hostID"},
		"security of a subnet's ports":      {`{"networks":[{"subnets":[{"uuid":"s","portSecurity":false}]}]}`, "networks[0].subnets[0].portSecurity"},
		"the only image is the root volume": {`{"image":null,"rootVolume":{"diskSize":1,"sourceUUID":"rhcos"}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			warnings, err := render.Check(render.Input{Machine: exampleMachine(t, "openstack", tc.fields), ClusterID: "demo-x7k2p", Module: openstack})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if tc.wantWarning != "" {
				want = []string{"spec.providerSpec.value." + tc.wantWarning}
			}
			if len(warnings) != len(want) || len(want) == 1 && warnings[0].Path != want[0] {
				t.Errorf("warnings %v, want one of each of %v", warnings, want)
			}
		})
	}
}
