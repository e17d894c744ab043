package webhooks

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// awsExample returns the providerSpec that the installer writes, with fields changed; null takes
// one away.
func awsExample(t *testing.T, changes string) *runtime.RawExtension {
	t.Helper()
	content, err := fs.ReadFile(modules.FS, "aws/examples/machineset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set machinev1beta1.MachineSet
	if err := yaml.UnmarshalStrict(content, &set); err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	for _, layer := range [][]byte{set.Spec.Template.Spec.ProviderSpec.Value.Raw, []byte(changes)} {
		if err := json.Unmarshal(layer, &fields); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: merged}
}

// TestAWSRefusesInTheWordsOfTheMachineAPI changes the MachineSet that the installer writes, a field
// at a time. The message names the field where it stands, and has the whole text of the Machine API
// in it.
func TestAWSRefusesInTheWordsOfTheMachineAPI(t *testing.T) {
	long.Test(t)
	const volume = `{"blockDevices":[{"ebs":{"volumeSize":120}},{"deviceName":"/dev/xvdb","ebs":`
	populated := func(path, what string) string {
		return "providerSpec." + path + ": Required value: expected providerSpec." + what + " to be populated"
	}
	invalid := func(path, value, why string) string {
		return "providerSpec." + path + ": Invalid value: " + value + ": " + why
	}
	tests := map[string]struct {
		fields    string
		wantField string
		want      string
	}{
		"no image":                 {`{"ami":null}`, "ami.id", populated("ami", "ami.id")},
		"an empty image":           {`{"ami":{"id":""}}`, "ami.id", populated("ami", "ami.id")},
		"an image by filters only": {`{"ami":{"filters":[{"name":"name","values":["rhcos"]}]}}`, "ami.id", populated("ami", "ami.id")},
		"no region":                {`{"placement":{"availabilityZone":"us-east-1a"}}`, "placement.region", populated("placement.region", "placement.region")},
		"no instance type":         {`{"instanceType":null}`, "instanceType", populated("instanceType", "instanceType")},
		"an empty instance type":   {`{"instanceType":""}`, "instanceType", populated("instanceType", "instanceType")},
		"no user data":             {`{"userDataSecret":null}`, "userDataSecret", populated("userDataSecret", "userDataSecret")},
		"user data without a name": {
			`{"userDataSecret":{"name":""}}`, "userDataSecret.name",
			"providerSpec.userDataSecret.name: Required value: expected providerSpec.userDataSecret.name to be provided",
		},
		"no credentials": {`{"credentialsSecret":null}`, "credentialsSecret", populated("credentialsSecret", "credentialsSecret")},
		"another tenancy": {
			`{"placement":{"region":"r","tenancy":"x"}}`, "placement.tenancy",
			invalid("tenancy", `"x"`, "Invalid providerSpec.tenancy, the only allowed options are: default, dedicated, host, or omitted"),
		},
		"a partition above the range": {
			`{"placementGroupName":"g","placementGroupPartition":8}`, "placementGroupPartition",
			invalid("placementGroupPartition", "8", "providerSpec.placementGroupPartition must be between 1 and 7"),
		},
		"a partition below the range": {
			`{"placementGroupName":"g","placementGroupPartition":0}`, "placementGroupPartition",
			invalid("placementGroupPartition", "0", "providerSpec.placementGroupPartition must be between 1 and 7"),
		},
		"a partition of no group": {
			`{"placementGroupPartition":3}`, "",
			invalid("placementGroupPartition", "3", "providerSpec.placementGroupPartition is set but providerSpec.placementGroupName is empty"),
		},
		"another network interface": {
			`{"networkInterfaceType":"x"}`, "networkInterfaceType", invalid("networkInterfaceType", `"x"`, "Valid values are: ENA, EFA and omitted"),
		},
		"another authentication": {
			`{"metadataServiceOptions":{"authentication":"x"}}`, "metadataServiceOptions.authentication",
			invalid("metadataServiceOptions.authentication", `"x"`, "Allowed values are either 'Optional' or 'Required'"),
		},
		"throughput of another volume": {
			volume + `{"volumeType":"gp2","throughputMib":200}}]}`, "blockDevices[1].ebs",
			invalid("blockDevices[1].ebs.throughputMib", "200", "only valid for gp3 volumes"),
		},
		"throughput below the range": {
			volume + `{"volumeType":"gp3","throughputMib":124}}]}`, "blockDevices[1].ebs",
			invalid("blockDevices[1].ebs.throughputMib", "124", "must be a value between 125 and 2000"),
		},
		"throughput above the range": {
			volume + `{"volumeType":"gp3","throughputMib":2001}}]}`, "blockDevices[1].ebs",
			invalid("blockDevices[1].ebs.throughputMib", "2001", "must be a value between 125 and 2000"),
		},
		"options of a processor, but none": {
			`{"cpuOptions":{}}`, "cpuOptions.confidentialCompute", invalid("CPUOptions", `"{}"`, "At least one field must be set if cpuOptions is provided"),
		},
		"another confidential computing": {
			`{"cpuOptions":{"confidentialCompute":"x"}}`, "cpuOptions.confidentialCompute",
			invalid("CPUOptions.ConfidentialCompute", `"x"`, "Allowed values are Disabled, AMDEncryptedVirtualizationNestedPaging and omitted"),
		},
		"a reservation of another form": {
			`{"capacityReservationId":"cr-1"}`, "capacityReservationId",
			"it must start with 'cr-' and be exactly 20 characters long with 17 hexadecimal characters",
		},
		"another market": {
			`{"marketType":"x"}`, "marketType", invalid("marketType", `"x"`, "invalid marketType: x valid values are: OnDemand, Spot, CapacityBlock and omitted"),
		},
		"a Spot instance with a reservation": {
			`{"spotMarketOptions":{},"capacityReservationId":"cr-0123456789abcdef0"}`, "", "spotMarketOptions and capacityReservationID may not be used together",
		},
		"Spot options on demand":             {`{"spotMarketOptions":{},"marketType":"OnDemand"}`, "", "invalid marketType: setting marketType to OnDemand and spotMarketOptions cannot be used together"},
		"a capacity block of no reservation": {`{"marketType":"CapacityBlock"}`, "", "capacityReservationID is required when CapacityBlock is provided"},
		"a host without its tenancy": {
			`{"placement":{"region":"r","host":{"affinity":"AnyAvailable"}}}`, "placement", "spec.placement.host: Forbidden: host may only be specified when tenancy is 'host'",
		},
		"affinity to a host that is no one": {
			`{"placement":{"region":"r","tenancy":"host","host":{"affinity":"DedicatedHost"}}}`, "placement.host",
			"dedicatedHost is required when hostAffinity is DedicatedHost, and optional otherwise",
		},
	}
	rules := awsRules(t, "amd64")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			value := awsExample(t, tc.fields)
			for _, got := range []admissionResult{
				rules.newMachine(machineWith(withValue(value))),
				rules.newMachineSet(setWith(withTemplate(value))),
			} {
				path := "providerSpec.value"
				if tc.wantField != "" {
					path = "providerSpec." + tc.wantField
				}
				if len(got.errs) != 1 || got.errs[0].Field != path || !strings.Contains(got.errs[0].Error(), tc.want) {
					t.Errorf("want one refusal of %s with\n%s\ngot\n%s", path, tc.want, strings.Join(texts(got.errs), "\n"))
				}
			}
		})
	}
}

func TestAWSWarnsInTheWordsOfTheMachineAPI(t *testing.T) {
	const filters = `"filters":[{"name":"tag:Name","values":["x"]}]`
	tests := map[string]struct {
		fields string
		want   string
	}{
		"no subnet": {
			`{"subnet":null}`,
			"providerSpec.subnet: No subnet has been provided. Instances may be created in an unexpected subnet and may not join the cluster.",
		},
		"a subnet by ARN": {
			`{"subnet":{"arn":"a"}}`,
			"can't use providerSpec.subnet.arn, only providerSpec.subnet.id or providerSpec.subnet.filters can be used to reference Subnet",
		},
		"a subnet by its name and by filters": {`{"subnet":{"id":"subnet-1",` + filters + `}}`, "providerSpec.subnet.filters: they have no effect beside providerSpec.subnet.id"},
		"no instance profile": {
			`{"iamInstanceProfile":null}`, "providerSpec.iamInstanceProfile: no IAM instance profile provided: nodes may be unable to join the cluster",
		},
		"an instance profile by ARN": {
			`{"iamInstanceProfile":{"arn":"a"}}`,
			"can't use providerSpec.iamInstanceProfile.arn, only providerSpec.iamInstanceProfile.id can be used to reference IAMInstanceProfile",
		},
		"an instance profile by filters": {
			`{"iamInstanceProfile":{"id":"p",` + filters + `}}`,
			"can't use providerSpec.iamInstanceProfile.filters, only providerSpec.iamInstanceProfile.id can be used to reference IAMInstanceProfile",
		},
		"an image by ARN":       {`{"ami":{"id":"ami-1","arn":"a"}}`, "can't use providerSpec.ami.arn, only providerSpec.ami.id can be used to reference AMI"},
		"an image by filters":   {`{"ami":{"id":"ami-1",` + filters + `}}`, "can't use providerSpec.ami.filters, only providerSpec.ami.id can be used to reference AMI"},
		"tags that are doubled": {`{"tags":[{"name":"B"},{"name":"A"},{"name":"A"},{"name":"a"},{"name":"B"},{"name":"A"}]}`, "providerSpec.tags: duplicated tag names (A,B): only the first value will be used."},
		"a security group by ARN": {
			`{"securityGroups":[{"id":"sg-1","arn":"a"}]}`, "providerSpec.securityGroups: arn has no effect, nor have filters beside id",
		},
		"another version": {
			`{"apiVersion":"aws.openshift.io/v2"}`, "incorrect GroupVersionKind for AWSMachineProviderConfig object: aws.openshift.io/v2, Kind=AWSMachineProviderConfig",
		},
		"a kind of public Helm charts": {
			`{"kind":"AWSMachineProviderSpec"}`, "incorrect GroupVersionKind for AWSMachineProviderConfig object: " +
				"machine.openshift.io/v1beta1, Kind=AWSMachineProviderSpec; write kind: AWSMachineProviderConfig",
		},
		"an unknown field": {`{"zone":"a"}`, `providerSpec.value: Unsupported value: "zone": Unknown field (zone) will be ignored`},
		"a misspelled field": {
			`{"instanceTyp":"a"}`, `providerSpec.value: Unsupported value: "instanceTyp": Unknown field (instanceTyp) will be ignored; did you mean "instanceType"?`,
		},
		"nothing doubtful": {`{}`, ""},
	}
	rules := awsRules(t, "amd64")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			value := awsExample(t, tc.fields)
			for kind, got := range map[string]admissionResult{
				"Machine": rules.newMachine(machineWith(withValue(value))), "MachineSet": rules.newMachineSet(setWith(withTemplate(value))),
			} {
				if diff := cmp.Diff(want, got.warnings); diff != "" || len(got.errs) > 0 {
					t.Errorf("%s: %v (-want +got):\n%s", kind, texts(got.errs), diff)
				}
			}
		})
	}
}
