package modules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// TestAWSRefusesInTheWordsOfTheMachineAPI changes the MachineSet that the installer writes, a field at a time, and reads what its author
// is told.
func TestAWSRefusesInTheWordsOfTheMachineAPI(t *testing.T) {
	aws, err := module.Load(os.DirFS("aws"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		// fields take the place of those of the providerSpec; null takes one away.
		fields     string
		wantField  string
		wantDetail string
	}{
		"no image":                          {`{"ami":null}`, "ami.id", "expected providerSpec.ami.id to be populated"},
		"an empty image":                    {`{"ami":{"id":""}}`, "ami.id", "expected providerSpec.ami.id to be populated"},
		"no region":                         {`{"placement":{"availabilityZone":"us-east-1a"}}`, "placement.region", "expected providerSpec.placement.region to be populated"},
		"an empty instance type":            {`{"instanceType":""}`, "instanceType", "expected providerSpec.instanceType to be populated"},
		"no user data":                      {`{"userDataSecret":null}`, "userDataSecret", "expected providerSpec.userDataSecret to be populated"},
		"user data without a name":          {`{"userDataSecret":{}}`, "userDataSecret.name", "expected providerSpec.userDataSecret.name to be provided"},
		"no credentials":                    {`{"credentialsSecret":null}`, "credentialsSecret", "expected providerSpec.credentialsSecret to be populated"},
		"another tenancy":                   {`{"placement":{"region":"r","tenancy":"x"}}`, "placement.tenancy", "Invalid providerSpec.tenancy, the only allowed options are: default, dedicated, host, or omitted"},
		"a partition out of range":          {`{"placementGroupName":"g","placementGroupPartition":8}`, "placementGroupPartition", "providerSpec.placementGroupPartition must be between 1 and 7"},
		"a partition of no group":           {`{"placementGroupPartition":3}`, "", "providerSpec.placementGroupPartition is set but providerSpec.placementGroupName is empty"},
		"another network interface":         {`{"networkInterfaceType":"x"}`, "networkInterfaceType", "Valid values are: ENA, EFA and omitted"},
		"another authentication":            {`{"metadataServiceOptions":{"authentication":"x"}}`, "metadataServiceOptions.authentication", "Allowed values are either 'Optional' or 'Required'"},
		"throughput of another volume":      {`{"blockDevices":[{"ebs":{"volumeType":"gp2","throughputMib":200}}]}`, "blockDevices[0].ebs", "only valid for gp3 volumes"},
		"throughput out of range":           {`{"blockDevices":[{"ebs":{"volumeType":"gp3","throughputMib":2001}}]}`, "blockDevices[0].ebs.throughputMib", "must be a value between 125 and 2000"},
		"options of a processor, but none":  {`{"cpuOptions":{}}`, "cpuOptions.confidentialCompute", "At least one field must be set if cpuOptions is provided"},
		"a reservation of another form":     {`{"capacityReservationId":"cr-1"}`, "capacityReservationId", "it must start with 'cr-' and be exactly 20 characters long with 17 hexadecimal characters"},
		"a host without its tenancy":        {`{"placement":{"region":"r","host":{"affinity":"AnyAvailable"}}}`, "placement", "host may only be specified when tenancy is host"},
		"affinity to a host that is no one": {`{"placement":{"region":"r","tenancy":"host","host":{"affinity":"DedicatedHost"}}}`, "placement.host", "dedicatedHost is required when affinity is DedicatedHost, and optional otherwise"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := render.Check(render.Input{Machine: awsMachine(t, tc.fields), ClusterID: "demo-x7k2p", Module: aws})
			lines := []string{}
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			path := strings.TrimSuffix("spec.providerSpec.value."+tc.wantField, ".")
			if len(lines) != 1 || !strings.HasPrefix(lines[0], path+": ") || !strings.HasSuffix(lines[0], "; "+tc.wantDetail) {
				t.Errorf("want one refusal of %s that ends in %q, got\n%s", path, tc.wantDetail, strings.Join(lines, "\n"))
			}
		})
	}
}

func TestAWSTakesTheProviderSpecThatTheInstallerWrites(t *testing.T) {
	aws, err := module.Load(os.DirFS("aws"))
	if err != nil {
		t.Fatal(err)
	}
	for _, apiVersion := range []string{
		"machine.openshift.io/v1beta1", "machine.openshift.io/v1", "awsproviderconfig.openshift.io/v1beta1", "awsproviderconfig.openshift.io/v1",
	} {
		warnings, err := render.Check(render.Input{Machine: awsMachine(t, `{"apiVersion":"`+apiVersion+`"}`), ClusterID: "demo-x7k2p", Module: aws})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", apiVersion, err, warnings)
		}
	}
}

// awsMachine answers a Machine of the module's example, with fields of its providerSpec changed.
func awsMachine(t *testing.T, changes string) *machinev1beta1.Machine {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("aws", "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var set machinev1beta1.MachineSet
	if err := yaml.UnmarshalStrict(content, &set); err != nil {
		t.Fatal(err)
	}
	value := set.Spec.Template.Spec.ProviderSpec.Value
	fields := map[string]any{}
	for _, layer := range [][]byte{value.Raw, []byte(changes)} {
		if err := json.Unmarshal(layer, &fields); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	machine := &machinev1beta1.Machine{Spec: set.Spec.Template.Spec}
	machine.Labels = set.Spec.Template.Labels
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return machine
}
