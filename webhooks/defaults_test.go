package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

const awsKind = `"apiVersion":"machine.openshift.io/v1beta1","kind":"AWSMachineProviderConfig"`

// awsRules are those of the module aws in a cluster of which all is known.
func awsRules(t testing.TB, architecture string) rules {
	t.Helper()
	cluster := module.ClusterValues{module.ValueArchitecture: architecture, module.ValueRegion: "us-east-1"}
	return newRules(Options{Catalog: catalogOf(t, "aws"), ClusterID: "demo-x7k2p", ClusterValues: cluster})
}

func raw(fields string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte("{" + fields + "}")}
}

func TestDefaultersWriteWhatTheModuleSays(t *testing.T) {
	const (
		secrets = `"credentialsSecret":{"name":"aws-cloud-credentials"},`
		kind    = `"kind":"AWSMachineProviderConfig",`
		version = `"apiVersion":"machine.openshift.io/v1beta1",`
		ending  = `"userDataSecret":{"name":"worker-user-data"}}`
	)
	tests := map[string]struct {
		architecture string
		providerSpec string
		want         string
	}{
		"the least that there can be": {
			architecture: "amd64", providerSpec: awsKind + `,"ami":{"id":"ami-1"}`,
			want: `{"ami":{"id":"ami-1"},` + version + secrets + `"instanceType":"m5.large",` + kind + `"placement":{"region":"us-east-1"},` + ending,
		},
		"a cluster of another architecture": {
			architecture: "arm64", providerSpec: awsKind + `,"ami":{"id":"ami-1"}`,
			want: `{"ami":{"id":"ami-1"},` + version + secrets + `"instanceType":"m6g.large",` + kind + `"placement":{"region":"us-east-1"},` + ending,
		},
		"a placement without a region gets one": {
			architecture: "amd64", providerSpec: awsKind + `,"placement":{"availabilityZone":"us-east-1a"}`,
			want: `{` + version + secrets + `"instanceType":"m5.large",` + kind + `"placement":{"availabilityZone":"us-east-1a","region":"us-east-1"},` + ending,
		},
		"nothing that is given is overwritten, not even a Secret without a name": {
			architecture: "amd64", providerSpec: awsKind + `,"instanceType":"t3.micro","placement":{"region":"r"},"userDataSecret":{},"credentialsSecret":{"name":"c"}`,
		},
		"a kind that nobody serves stays, to be refused later": {
			architecture: "amd64", providerSpec: `"apiVersion":"machine.openshift.io/v1beta1","kind":"Other"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rules := awsRules(t, tc.architecture)
			if tc.want == "" {
				tc.want = "{" + tc.providerSpec + "}"
			}
			machine := machineWith(withValue(raw(tc.providerSpec)))
			if err := (&machineDefaulter{rules: rules}).Default(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(machine.Spec.ProviderSpec.Value.Raw)); diff != "" {
				t.Errorf("Machine (-want +got):\n%s", diff)
			}
			set := setWith(withTemplate(raw(tc.providerSpec)))
			before := set.Spec.Template.Labels
			if err := (&machineSetDefaulter{rules: rules}).Default(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(set.Spec.Template.Spec.ProviderSpec.Value.Raw)); diff != "" {
				t.Errorf("MachineSet (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, set.Spec.Template.Labels); diff != "" {
				t.Errorf("a template gets no label (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADefaultOfAnotherClusterIsThatOfTheMachine(t *testing.T) {
	rules := newRules(Options{Catalog: catalogOf(t, "aws"), ClusterID: "demo", ClusterValues: module.ClusterValues{module.ValueClusterID: "stale"}})
	if got := rules.cluster[module.ValueClusterID]; got != "demo" {
		t.Errorf("the cluster is %q, want the option's", got)
	}
}

func TestWhatIsFilledInIsAcceptedAndWhatIsTakenAwayIsNot(t *testing.T) {
	rules := awsRules(t, "amd64")
	machine := machineWith(withValue(raw(awsKind + `,"ami":{"id":"ami-1"}`)))
	if err := (&machineDefaulter{rules: rules}).Default(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if got := rules.newMachine(machine); len(got.errs) > 0 {
		t.Fatalf("what is filled in is refused: %v", got.errs)
	}
	without := func(path string) *machinev1beta1.Machine {
		fields := map[string]string{
			"instanceType": `"instanceType":"m5.large"`, "placement.region": `"placement":{"region":"us-east-1"}`,
			"userDataSecret": `"userDataSecret":{"name":"u"}`, "credentialsSecret": `"credentialsSecret":{"name":"c"}`,
		}
		text := awsKind + `,"ami":{"id":"ami-1"}`
		for name, field := range fields {
			if name != path {
				text += "," + field
			}
		}
		return machineWith(withValue(raw(text)))
	}
	for _, path := range []string{"instanceType", "placement.region", "userDataSecret", "credentialsSecret"} {
		got := rules.changedMachine(machine, without(path))
		if len(got.errs) != 1 || got.errs[0].Field != "providerSpec."+path {
			t.Errorf("an update that takes %s away returns %v", path, texts(got.errs))
		}
	}
}

func TestTheLeastOfOtherPlatforms(t *testing.T) {
	const metadata = `"apiVersion":"machine.openshift.io/v1beta1"`
	tests := map[string]struct {
		module, providerSpec string
		cluster              module.ClusterValues
		want                 string
		wantWarnings         []string
	}{
		"azure": {
			module: "azure", cluster: module.ClusterValues{module.ValueResourceGroup: "demo-rg", module.ValueNetworkResourceGroup: "net-rg"},
			providerSpec: metadata + `,"kind":"AzureMachineProviderSpec","location":"eastus","osDisk":{"diskSizeGB":128},"image":{"resourceID":"i"}`,
			want: `{` + metadata + `,"credentialsSecret":{"name":"azure-cloud-credentials","namespace":"openshift-machine-api"},"image":{"resourceID":"i"},` +
				`"kind":"AzureMachineProviderSpec","location":"eastus","networkResourceGroup":"net-rg","osDisk":{"diskSizeGB":128},"resourceGroup":"demo-rg",` +
				`"subnet":"demo-x7k2p-worker-subnet","userDataSecret":{"name":"worker-user-data"},"vmSize":"Standard_D4s_V3","vnet":"demo-x7k2p-vnet"}`,
		},
		"azure, on arm64, with a network and a Secret of one's own": {
			module: "azure", cluster: module.ClusterValues{module.ValueArchitecture: "arm64"},
			providerSpec: metadata + `,"kind":"AzureMachineProviderSpec","location":"eastus","osDisk":{"diskSizeGB":128},"image":{"resourceID":"i"},` +
				`"resourceGroup":"r","vnet":"v","subnet":"s","credentialsSecret":{"name":"c"},"userDataSecret":{"name":""}`,
			want: `{` + metadata + `,"credentialsSecret":{"name":"c","namespace":"openshift-machine-api"},"image":{"resourceID":"i"},` +
				`"kind":"AzureMachineProviderSpec","location":"eastus","osDisk":{"diskSizeGB":128},"resourceGroup":"r",` +
				`"subnet":"s","userDataSecret":{"name":"worker-user-data"},"vmSize":"Standard_D4ps_V5","vnet":"v"}`,
		},
		"gcp": {
			module: "gcp", cluster: module.ClusterValues{module.ValueProject: "acme"},
			providerSpec: metadata + `,"kind":"GCPMachineProviderSpec","region":"us-central1","zone":"us-central1-a","disks":[{"boot":true,"image":"i"}]`,
			want: `{` + metadata + `,"credentialsSecret":{"name":"gcp-cloud-credentials"},"disks":[{"boot":true,"image":"i"}],"kind":"GCPMachineProviderSpec",` +
				`"machineType":"n1-standard-4","networkInterfaces":[{"network":"demo-x7k2p-network","subnetwork":"demo-x7k2p-worker-subnet"}],"projectID":"acme",` +
				`"region":"us-central1","tags":["demo-x7k2p-worker"],"userDataSecret":{"name":"worker-user-data"},"zone":"us-central1-a"}`,
			wantWarnings: []string{
				"providerSpec.serviceAccounts: no service account provided: nodes may be unable to join the cluster",
				"providerSpec.disks[].autoDelete: it is not true, so that the disk stays when the Machine is deleted",
			},
		},
		"vsphere": {
			module: "vsphere",
			providerSpec: metadata + `,"kind":"VSphereMachineProviderSpec","template":"t","network":{"devices":[{"networkName":"n"}]},` +
				`"workspace":{"server":"v","datacenter":"d","datastore":"s","resourcePool":"r"}`,
			want: `{` + metadata + `,"credentialsSecret":{"name":"vsphere-cloud-credentials"},"kind":"VSphereMachineProviderSpec",` +
				`"network":{"devices":[{"networkName":"n"}]},"template":"t","userDataSecret":{"name":"worker-user-data"},` +
				`"workspace":{"datacenter":"d","datastore":"s","resourcePool":"r","server":"v"}}`,
			wantWarnings: []string{
				"providerSpec.numCPUs: 0 is missing or less than the minimum value (2): nodes may not boot correctly",
				"providerSpec.memoryMiB: 0 is missing or less than the recommended minimum value (2048): nodes may not boot correctly",
				"providerSpec.diskGiB: 0 is missing or less than the recommended minimum (120): nodes may fail to start if disk size is too low",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rules := newRules(Options{Catalog: catalogOf(t, tc.module), ClusterID: "demo-x7k2p", ClusterValues: tc.cluster})
			set := setWith(withTemplate(raw(tc.providerSpec)))
			set.Namespace = "openshift-machine-api"
			for _, labels := range []map[string]string{set.Spec.Selector.MatchLabels, set.Spec.Template.Labels} {
				labels[builder.ClusterLabel] = "demo-x7k2p"
			}
			if err := (&machineSetDefaulter{rules: rules}).Default(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(set.Spec.Template.Spec.ProviderSpec.Value.Raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			got := rules.newMachineSet(set)
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" || len(got.errs) > 0 {
				t.Errorf("it returns %v (-want +got):\n%s", texts(got.errs), diff)
			}
		})
	}
}
