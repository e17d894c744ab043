package module

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"sigs.k8s.io/yaml"
)

func TestOfAnInfrastructure(t *testing.T) {
	for name, tc := range map[string]struct {
		infrastructure string
		want           Cluster
	}{
		"nothing is known": {},
		"AWS has tags and a family of addresses": {
			infrastructure: "status: {platformStatus: {type: AWS, aws: {region: us-east-1, ipFamily: DualStackIPv6Primary, resourceTags: [{key: team, value: \"\"}]}}}",
			want:           Cluster{Platform: "AWS", Region: "us-east-1", IPFamily: "DualStackIPv6Primary", ResourceTags: []ResourceTag{{Key: "team"}}},
		},
		"Azure has a cloud and a network": {
			infrastructure: "status: {platformStatus: {type: Azure, azure: {resourceGroupName: rg, cloudName: AzureUSGovernmentCloud, resourceTags: [{key: a, value: b}]}}}",
			want: Cluster{
				Platform: "Azure", CloudName: "AzureUSGovernmentCloud", NetworkResourceGroup: "rg", ResourceTags: []ResourceTag{{Key: "a", Value: "b"}},
			},
		},
		"Google Cloud has labels, and tags with parents": {
			infrastructure: "status: {platformStatus: {type: GCP, gcp: {region: r, projectID: p, resourceLabels: [{key: a, value: b}], resourceTags: [{parentID: \"1\", key: k, value: v}]}}}",
			want: Cluster{
				Platform: "GCP", Region: "r", ResourceLabels: map[string]string{"a": "b"}, ResourceTags: []ResourceTag{{Key: "k", Value: "v", ParentID: "1"}},
			},
		},
		"OpenStack has virtual addresses": {
			infrastructure: "status: {platformStatus: {type: OpenStack, openstack: {apiServerInternalIPs: [192.0.2.1, \"2001:db8::1\"], ingressIPs: [192.0.2.2]}}}",
			want:           Cluster{Platform: "OpenStack", APIVIPs: []string{"192.0.2.1", "2001:db8::1"}, IngressVIPs: []string{"192.0.2.2"}},
		},
		"a load balancer of the user's on OpenStack has the virtual addresses": {
			infrastructure: "status: {platformStatus: {type: OpenStack, openstack: {apiServerInternalIPs: [192.0.2.1], ingressIPs: [192.0.2.2], loadBalancer: {type: UserManaged}}}}",
			want:           Cluster{Platform: "OpenStack"},
		},
		"an older cluster has one virtual address of each": {
			infrastructure: "status: {platform: BareMetal, platformStatus: {baremetal: {apiServerInternalIP: 192.0.2.1, ingressIP: 192.0.2.2}}}",
			want:           Cluster{Platform: "BareMetal", APIVIPs: []string{"192.0.2.1"}, IngressVIPs: []string{"192.0.2.2"}},
		},
		"vSphere has failure domains": {
			infrastructure: `
spec:
  platformSpec:
    vsphere:
      failureDomains:
        - name: fd
          region: r
          zone: z
          server: vcenter
          zoneAffinity: {type: HostGroup, hostGroup: {hostGroup: hosts, vmGroup: vms}}
          topology: {datacenter: dc, computeCluster: /dc/host/c, datastore: ds, networks: [net], resourcePool: p, folder: f, template: t}
status: {platformStatus: {type: VSphere, vsphere: {apiServerInternalIPs: [192.0.2.1]}}}`,
			want: Cluster{Platform: "VSphere", APIVIPs: []string{"192.0.2.1"}, FailureDomains: []FailureDomain{{
				Name: "fd", Region: "r", Zone: "z", Server: "vcenter", Datacenter: "dc", ComputeCluster: "/dc/host/c", Datastore: "ds", ResourcePool: "p",
				Folder: "f", Template: "t", HostGroup: "hosts", VMGroup: "vms", Networks: []string{"net"},
			}}},
		},
		"Nutanix has failure domains": {
			infrastructure: `
spec:
  platformSpec:
    nutanix:
      failureDomains:
        - name: fd
          cluster: {type: UUID, uuid: 0005b6f1-0000-0000-0000-000000000001}
          subnets: [{type: Name, name: net}, {type: UUID, uuid: 0005b6f1-0000-0000-0000-000000000002}]
status: {platformStatus: {type: Nutanix}}`,
			want: Cluster{Platform: "Nutanix", FailureDomains: []FailureDomain{{
				Name: "fd", ComputeCluster: "0005b6f1-0000-0000-0000-000000000001", Networks: []string{"net", "0005b6f1-0000-0000-0000-000000000002"},
			}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			infrastructure := &configv1.Infrastructure{}
			if err := yaml.Unmarshal([]byte(tc.infrastructure), infrastructure); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, ClusterOf(infrastructure)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(&Cluster{}, ClusterOf(nil)); diff != "" {
		t.Errorf("without an Infrastructure (-want +got):\n%s", diff)
	}
}

func TestValueIsOfTheDeclaredType(t *testing.T) {
	full := &Cluster{
		Platform: "VSphere", ResourceTags: []ResourceTag{{Key: "a"}}, ResourceLabels: map[string]string{"a": "b"},
		FailureDomains: []FailureDomain{{Name: "one", Zone: "z", Networks: []string{"n"}}, {Name: "two"}},
	}
	for name, tc := range map[string]struct {
		cluster        *Cluster
		declared, want string
	}{
		"attributes that are not declared are left out": {full, "object({ platform = optional(string) })", `{"platform":"VSphere"}`},
		"what is not known is null or empty": {
			nil, "object({ region = optional(string), api_vips = optional(list(string)), resource_labels = optional(map(string)), failure_domains = optional(list(object({ zone = string }))) })",
			`{"api_vips":[],"failure_domains":[],"region":null,"resource_labels":{}}`,
		},
		"the module's default stands for what is not known": {nil, `object({ region = optional(string, "") })`, `{"region":""}`},
		"parts of parts are left out": {
			full, "object({ failure_domains = optional(list(object({ zone = string, networks = list(string) }))) })",
			`{"failure_domains":[{"networks":["n"],"zone":"z"},{"networks":[],"zone":null}]}`,
		},
		"the installation, which a module from before there was one does not declare": {
			&Cluster{Installation: "uid", Platform: "AWS"}, `object({ installation = optional(string, "") })`, `{"installation":"uid"}`,
		},
		"an installation that is not known": {nil, `object({ installation = optional(string, "") })`, `{"installation":""}`},
		"an empty value of a tag is known": {
			full, "object({ resource_tags = optional(list(object({ key = string, value = string, parent_id = optional(string) }))), resource_labels = optional(map(string)) })",
			`{"resource_labels":{"a":"b"},"resource_tags":[{"key":"a","parent_id":null,"value":""}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			expression, diags := hclsyntax.ParseExpression([]byte(tc.declared), "", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			declared, defaults, diags := typeexpr.TypeConstraintWithDefaults(expression)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if problem, fix := CheckClusterType(declared); problem != "" {
				t.Fatalf("the type is refused: %s; %s", problem, fix)
			}
			value, err := tc.cluster.Value(declared, defaults)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := ctyjson.Marshal(value, value.Type())
			if err != nil {
				t.Fatal(err)
			}
			if string(raw) != tc.want {
				t.Errorf("got %s, want %s", raw, tc.want)
			}
		})
	}
}

func TestEveryAttributeCanBeDeclared(t *testing.T) {
	all := cty.ObjectWithOptionalAttrs(clusterType.AttributeTypes(), []string{
		"installation", "platform", "region", "ip_family", "cloud_name", "network_resource_group", "api_vips", "ingress_vips", "resource_tags", "resource_labels", "failure_domains",
	})
	if problem, fix := CheckClusterType(all); problem != "" {
		t.Errorf("the type is refused: %s; %s", problem, fix)
	}
	if _, err := (&Cluster{}).Value(all, nil); err != nil {
		t.Error(err)
	}
}
