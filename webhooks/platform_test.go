package webhooks

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1 "github.com/openshift/api/machine/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// TestMinimalProviderSpecsHaveNoKind creates what OpenShift's own tests create: as little as its
// webhooks complete, without a kind, and with every field that Go writes for a type's zero value.
func TestMinimalProviderSpecsHaveNoKind(t *testing.T) {
	for platform, tc := range map[configv1.PlatformType]struct {
		module, kind string
		minimal      any
		wantDefaults []string
	}{
		configv1.AWSPlatformType: {
			module: "aws", kind: "AWSMachineProviderConfig",
			minimal: machinev1beta1.AWSMachineProviderConfig{
				AMI: machinev1beta1.AWSResourceReference{ID: ptr.To("ami-1")}, Placement: machinev1beta1.Placement{Region: "us-east-1", AvailabilityZone: "us-east-1a"},
				Subnet: machinev1beta1.AWSResourceReference{ID: ptr.To("subnet-1")}, IAMInstanceProfile: &machinev1beta1.AWSResourceReference{ID: ptr.To("worker")},
				SecurityGroups: []machinev1beta1.AWSResourceReference{{ID: ptr.To("sg-1")}},
			},
			wantDefaults: []string{`"instanceType":"m5.large"`, `"credentialsSecret":{"name":"aws-cloud-credentials"}`, `"userDataSecret":{"name":"worker-user-data"}`},
		},
		configv1.AzurePlatformType: {
			module: "azure", kind: "AzureMachineProviderSpec",
			minimal: machinev1beta1.AzureMachineProviderSpec{
				Location: "centralus", OSDisk: machinev1beta1.OSDisk{DiskSizeGB: 128}, Vnet: "v", Subnet: "s", NetworkResourceGroup: "rg",
			},
			wantDefaults: []string{`"vmSize":"Standard_D4s_V3"`, `"credentialsSecret":{"name":"azure-cloud-credentials","namespace":"` + machineWith().Namespace + `"}`},
		},
		configv1.GCPPlatformType: {
			module: "gcp", kind: "GCPMachineProviderSpec",
			minimal: machinev1beta1.GCPMachineProviderSpec{
				Region: "us-central1", Zone: "us-central1-a", ServiceAccounts: []machinev1beta1.GCPServiceAccount{{Email: "a@b", Scopes: []string{"s"}}},
				NetworkInterfaces: []*machinev1beta1.GCPNetworkInterface{{Network: "n", Subnetwork: "s", ProjectID: "p"}},
			},
			wantDefaults: []string{`"machineType":"n1-standard-4"`, `"credentialsSecret":{"name":"gcp-cloud-credentials"}`},
		},
		configv1.VSpherePlatformType: {
			module: "vsphere", kind: "VSphereMachineProviderSpec",
			minimal: machinev1beta1.VSphereMachineProviderSpec{
				Template: "rhcos", NumCPUs: 4, MemoryMiB: 16384, DiskGiB: 120, Network: machinev1beta1.NetworkSpec{Devices: []machinev1beta1.NetworkDeviceSpec{{NetworkName: "n"}}},
				Workspace: &machinev1beta1.Workspace{Server: "v", Datacenter: "dc", Datastore: "ds", Folder: "/dc/vm/f", ResourcePool: "/dc/host/c/Resources"},
			},
			wantDefaults: []string{`"credentialsSecret":{"name":"vsphere-cloud-credentials"}`, `"userDataSecret":{"name":"worker-user-data"}`},
		},
		configv1.NutanixPlatformType: {
			module: "nutanix", kind: "NutanixMachineProviderConfig",
			minimal: machinev1.NutanixMachineProviderConfig{
				Cluster: machinev1.NutanixResourceIdentifier{Type: machinev1.NutanixIdentifierName, Name: ptr.To("pe")},
				Image:   machinev1.NutanixResourceIdentifier{Type: machinev1.NutanixIdentifierName, Name: ptr.To("rhcos")},
				Subnets: []machinev1.NutanixResourceIdentifier{{Type: machinev1.NutanixIdentifierName, Name: ptr.To("net")}}, VCPUSockets: 4, VCPUsPerSocket: 1,
				MemorySize: resource.MustParse("16Gi"), SystemDiskSize: resource.MustParse("120Gi"),
			},
			wantDefaults: []string{`"credentialsSecret":{"name":"nutanix-credentials"}`, `"userDataSecret":{"name":"worker-user-data"}`},
		},
	} {
		t.Run(string(platform), func(t *testing.T) {
			value, err := json.Marshal(tc.minimal)
			if err != nil {
				t.Fatal(err)
			}
			known := module.ClusterValues{module.ValuePlatform: string(platform), module.ValueArchitecture: "amd64", module.ValueRegion: "r", module.ValueProject: "p", module.ValueResourceGroup: "rg", module.ValueNetworkResourceGroup: "rg"}
			rules := newRules(Options{Catalog: catalogOf(t, tc.module), ClusterID: "demo-x7k2p", ClusterValues: known})
			machine := machineWith(withValue(&runtime.RawExtension{Raw: value}))
			if err := (&machineDefaulter{rules: rules}).Default(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.wantDefaults {
				if !strings.Contains(string(machine.Spec.ProviderSpec.Value.Raw), want) {
					t.Errorf("%s has not %s", machine.Spec.ProviderSpec.Value.Raw, want)
				}
			}
			got := rules.newMachine(machine)
			if len(got.errs) > 0 {
				t.Errorf("it is refused: %v", got.errs.ToAggregate())
			}
			if want := "incorrect GroupVersionKind for " + tc.kind + " object: /, Kind="; !slices.Contains(got.warnings, want) {
				t.Errorf("the warnings are %q, without %q", got.warnings, want)
			}
			delete(known, module.ValuePlatform)
			elsewhere := newRules(Options{Catalog: catalogOf(t, tc.module), ClusterID: "demo-x7k2p", ClusterValues: known})
			if got := elsewhere.newMachine(machine); len(got.errs) == 0 || got.errs[0].Field != "providerSpec.apiVersion" {
				t.Errorf("on no platform it is refused with %v", got.errs)
			}
		})
	}
}

// TestAFieldNeedsItsFeatureGate compares with the words of machine-api-operator.
func TestAFieldNeedsItsFeatureGate(t *testing.T) {
	with := func(workspace string) *machinev1beta1.Machine {
		return machineWith(withValue(&runtime.RawExtension{Raw: []byte(`{"apiVersion": "machine.openshift.io/v1beta1",
			"kind": "VSphereMachineProviderSpec", "credentialsSecret": {"name": "c"}, "userDataSecret": {"name": "u"},
			"template": "rhcos", "numCPUs": 4, "memoryMiB": 16384, "diskGiB": 120, "network": {"devices": [{"networkName": "n"}]},
			"workspace": {"server": "v", "datacenter": "dc", "datastore": "ds", "folder": "/dc/vm/f",
			"resourcePool": "/dc/host/c/Resources"` + workspace + `}}`)}))
	}
	const vmGroup = `, "vmGroup": "group"`
	options := Options{Catalog: catalogOf(t, "vsphere"), ClusterID: "demo-x7k2p"}
	enabled := newRules(options)
	options.DisabledGates = []string{"VSphereHostVMGroupZonal"}
	disabled := newRules(options)
	if got := enabled.newMachine(with(vmGroup)); len(got.errs) > 0 {
		t.Errorf("with the gate: %v", got.errs)
	}
	for _, unset := range []string{"", `, "vmGroup": ""`} {
		if got := disabled.newMachine(with(unset)); len(got.errs) > 0 {
			t.Errorf("without the field: %v", got.errs)
		}
	}
	const want = `providerSpec.workspace.vmGroup: Invalid value: "group": feature gate VSphereHostVMGroupZonal must be enabled to use vmGroup`
	if got := disabled.newMachine(with(vmGroup)).errs; len(got) != 1 || got[0].Error() != want {
		t.Errorf("without the gate: %v, want %s", got, want)
	}
	labelled := with(vmGroup)
	labelled.Labels["more"] = "yes"
	if got := disabled.changedMachine(with(vmGroup), labelled); len(got.errs) > 0 {
		t.Errorf("a Machine that has the field already: %v", got.errs)
	}
}

func TestRefusalsHaveTheFormOfTheMachineAPI(t *testing.T) {
	for want, errs := range map[string]admissionResult{
		"providerSpec.value: Required value: a value must be provided":                                                    newRules(Options{Catalog: catalogOf(t, "aws")}).providerSpec(machineWith(withValue(nil)), templatePath),
		`[providerSpec.ami.id: Invalid value: "": the module "aws" does not allow ""; providerSpec.ami: Required value: `: awsRules(t, "amd64").providerSpec(machineWith(withValue(raw(awsKind+`,"INSTANCETYPE":"m5.large"`))), templatePath),
	} {
		_, err := errs.response()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	got := awsRules(t, "amd64").newMachine(machineWith(withValue(awsExample(t, `{"instanceType":null,"instancetype":"m5.large"}`))))
	const spelling = `providerSpec.value: Unsupported value: "instancetype": Field (instancetype) is read as instanceType; write it so`
	if !slices.Contains(got.warnings, spelling) && len(got.errs) == 0 {
		t.Errorf("the warnings are %q, the errors %v", got.warnings, got.errs)
	}
}
