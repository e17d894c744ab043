package modules_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// TestRightsDependOnWhatIsAskedFor changes the MachineSet of each example, and compares the permissions with those of the example.
func TestRightsDependOnWhatIsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		module, fields string
		labels         map[string]string
		cluster        *module.Cluster
		want, without  []string
	}{
		"AWS, an instance without a profile": {module: "aws", fields: `{"iamInstanceProfile":null}`, without: []string{"iam:PassRole"}},
		"AWS, tags":                          {module: "aws", fields: `{"tags":[{"name":"team","value":"a"}]}`, want: []string{"ec2:DeleteTags"}},
		"AWS, tags that are the Machine's":   {module: "aws", fields: `{"tags":[{"name":"Name","value":"a"},{"name":"kubernetes.io/cluster/demo","value":"owned"}]}`},
		"AWS, tags of the Infrastructure": {
			module: "aws", cluster: &module.Cluster{ResourceTags: []module.ResourceTag{{Key: "team", Value: "a"}}}, want: []string{"ec2:DeleteTags"},
		},
		"AWS, a Spot instance": {
			module: "aws", fields: `{"spotMarketOptions":{}}`, want: []string{"ec2:CancelSpotInstanceRequests", "ec2:DescribeSpotInstanceRequests"},
		},
		"AWS, a Spot instance by its market": {
			module: "aws", fields: `{"marketType":"Spot"}`, want: []string{"ec2:CancelSpotInstanceRequests", "ec2:DescribeSpotInstanceRequests"},
		},
		"AWS, CPU credits": {module: "aws", fields: `{"instanceType":"t3.large"}`, want: []string{"ec2:DescribeInstanceCreditSpecifications"}},
		"AWS, a network load balancer": {
			module: "aws", fields: `{"loadBalancers":[{"name":"demo-int","type":"network"}]}`, want: []string{
				"elasticloadbalancing:DeregisterTargets", "elasticloadbalancing:DescribeTags", "elasticloadbalancing:DescribeTargetGroupAttributes",
				"elasticloadbalancing:DescribeTargetGroups", "elasticloadbalancing:DescribeTargetHealth", "elasticloadbalancing:RegisterTargets", "tag:GetResources",
			},
		},
		"AWS, a classic load balancer": {
			module: "aws", fields: `{"loadBalancers":[{"name":"demo","type":"classic"}]}`, want: []string{
				"elasticloadbalancing:DeregisterInstancesFromLoadBalancer", "elasticloadbalancing:DescribeLoadBalancers",
				"elasticloadbalancing:RegisterInstancesWithLoadBalancer",
			},
		},
		"AWS, a host of its own": {
			module: "aws", fields: `{"placement":{"region":"us-east-1","tenancy":"host","host":{"affinity":"DedicatedHost","dedicatedHost":{"allocationStrategy":"Dynamic"}}}}`, want: []string{
				"ec2:AllocateHosts", "ec2:CreateLaunchTemplate", "ec2:DeleteLaunchTemplate", "ec2:DescribeHosts", "ec2:DescribeLaunchTemplateVersions",
				"ec2:DescribeLaunchTemplates", "ec2:ReleaseHosts",
			},
		},
		"AWS, the address of a carrier": {
			module: "aws", fields: `{"placement":{"region":"us-east-1","availabilityZone":"us-east-1-wl1-bos-wlz-1"},"publicIp":true}`, want: []string{
				"ec2:CreateLaunchTemplate", "ec2:DeleteLaunchTemplate", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeLaunchTemplates",
			},
		},
		"Azure, a data disk": {
			module: "azure", fields: `{"dataDisks":[{"nameSuffix":"a","diskSizeGB":8,"deletionPolicy":"Delete"}]}`, want: []string{"Microsoft.Compute/disks/write"},
		},
		"Azure, no zone":                {module: "azure", fields: `{"zone":""}`, want: []string{"Microsoft.Resources/subscriptions/resources/read"}},
		"Azure, a data disk that stays": {module: "azure", fields: `{"dataDisks":[{"nameSuffix":"a","diskSizeGB":8,"deletionPolicy":"Detach"}]}`},
		"Azure, a public address and what else is joined": {
			module: "azure", fields: `{"publicIP":true,"securityGroup":"demo-nsg","capacityReservationGroupID":"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/capacityReservationGroups/c"}`,
			want: []string{
				"Microsoft.Compute/capacityReservationGroups/deploy/action", "Microsoft.Network/networkSecurityGroups/join/action",
				"Microsoft.Network/publicIPAddresses/delete", "Microsoft.Network/publicIPAddresses/join/action",
				"Microsoft.Network/publicIPAddresses/read", "Microsoft.Network/publicIPAddresses/write",
			},
		},
		"Google Cloud, another disk": {
			module: "gcp", fields: `{"disks":[{"boot":true,"autoDelete":true,"sizeGb":128,"image":"i"},{"autoDelete":true,"sizeGb":16}]}`,
			want: []string{"compute.disks.delete", "compute.disks.get", "compute.disks.use"},
		},
		"Google Cloud, a public address": {
			module: "gcp", fields: `{"networkInterfaces":[{"network":"n","subnetwork":"s","publicIP":true}]}`, want: []string{"compute.subnetworks.useExternalIp"},
		},
		"Google Cloud, tags of the resource manager": {
			module: "gcp", fields: `{"resourceManagerTags":[{"parentID":"1","key":"k","value":"v"}]}`, want: []string{"compute.disks.createTagBinding", "compute.instances.createTagBinding"},
		},
		"Google Cloud, the control plane": {
			module: "gcp", labels: map[string]string{"machine.openshift.io/cluster-api-machine-role": "master"},
			want: []string{"compute.instanceGroups.get", "compute.instanceGroups.list", "compute.instanceGroups.update", "compute.instances.use"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain := rightsOf(t, tc.module, "{}", nil, nil)
			if tc.fields == "" {
				tc.fields = "{}"
			}
			got := rightsOf(t, tc.module, tc.fields, tc.labels, tc.cluster)
			isIn := func(list []string) func(string) bool {
				return func(one string) bool { return slices.Contains(list, one) }
			}
			if diff := cmp.Diff(tc.want, slices.DeleteFunc(slices.Clone(got), isIn(plain)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("beyond the example's (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.without, slices.DeleteFunc(plain, isIn(got)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("of the example's and not of this (-want +got):\n%s", diff)
			}
		})
	}
}

// life is what a provider asks an infrastructure for in the life of a Machine of an example with these fields: besides what every life asks for, which is first.
type life struct {
	Life   string         `json:"life"`
	Fields map[string]any `json:"fields"`
	Calls  []string       `json:"calls"`
	// Refused are calls that need not be allowed, and are not.
	Refused []string `json:"refused"`
}

// TestRightsAreWhatALifeAsksFor compares spec.rights, and the CredentialsRequest of the example, with the calls of lives.
func TestRightsAreWhatALifeAsksFor(t *testing.T) {
	var lives []life
	readYAML(t, filepath.Join("..", "test", "rights", "calls-aws.yaml"), &lives)
	var request struct {
		Spec struct {
			ProviderSpec struct {
				StatementEntries []struct{ Action []string }
			}
		}
	}
	readYAML(t, filepath.Join("aws", "examples", "credentialsrequest.yaml"), &request)
	var granted []string
	for _, statement := range request.Spec.ProviderSpec.StatementEntries {
		granted = append(granted, statement.Action...)
	}
	for _, one := range lives {
		fields, err := json.Marshal(one.Fields)
		if err != nil {
			t.Fatal(err)
		}
		if one.Fields == nil {
			fields = []byte("{}")
		}
		calls := slices.Sorted(slices.Values(slices.Concat(lives[0].Calls, one.Calls)))
		if diff := cmp.Diff(slices.Compact(calls), rightsOf(t, "aws", string(fields), nil, nil)); diff != "" {
			t.Errorf("%s: the rights (-asked for +listed):\n%s", one.Life, diff)
		}
		for _, call := range one.Calls {
			if !slices.Contains(granted, call) {
				t.Errorf("%s: the CredentialsRequest does not grant %s", one.Life, call)
			}
		}
		for _, call := range one.Refused {
			if slices.Contains(granted, call) {
				t.Errorf("%s: the CredentialsRequest grants %s", one.Life, call)
			}
		}
	}
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rightsOf returns what a Machine of a module's example needs, with other fields and labels, sorted.
func rightsOf(t *testing.T, name, fields string, labels map[string]string, cluster *module.Cluster) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(name, "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set := &machinev1beta1.MachineSet{}
	if err := yaml.Unmarshal(content, set); err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{}
	for _, layer := range [][]byte{set.Spec.Template.Spec.ProviderSpec.Value.Raw, []byte(fields)} {
		if err := json.Unmarshal(layer, &spec); err != nil {
			t.Fatal(err)
		}
	}
	machine := render.MachineOf(set)
	maps.Copy(machine.Labels, labels)
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	input := render.Input{Machine: machine, ClusterID: "demo", Module: keptIn(t, name).Module, Cluster: cluster}
	if _, err := render.Check(input); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, entry := range render.Rights(input) {
		actions = append(actions, entry.Actions...)
	}
	slices.Sort(actions)
	return actions
}
