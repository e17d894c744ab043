package rights

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
)

// beyond are the permissions that modules need and machine-api-operator does not have: their providers read more than its controllers.
var beyond = map[string][]string{
	"aws": {
		"ec2:DescribeInstanceAttribute", "ec2:DescribeRouteTables", "ec2:DescribeTags", "ec2:DescribeVolumes", "ec2:DescribeVpcAttribute",
		"ec2:ModifyNetworkInterfaceAttribute",
		// With tags, for Spot instances, types with CPU credits, network and classic load balancers, a host of its own, and where there is a launch template.
		"ec2:DeleteTags", "ec2:CancelSpotInstanceRequests", "ec2:DescribeSpotInstanceRequests", "ec2:DescribeInstanceCreditSpecifications",
		"elasticloadbalancing:DescribeTags", "elasticloadbalancing:DescribeTargetGroupAttributes", "tag:GetResources",
		"elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
		"ec2:DescribeHosts",
		"ec2:CreateLaunchTemplate", "ec2:DeleteLaunchTemplate", "ec2:DescribeLaunchTemplates", "ec2:DescribeLaunchTemplateVersions",
	},
	"azure": {
		"Microsoft.Compute/disks/read", "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
		"Microsoft.Resources/subscriptions/resources/read",
		// With data disks, load balancers and application security groups.
		"Microsoft.Compute/disks/write", "Microsoft.Network/loadBalancers/backendAddressPools/read",
		"Microsoft.Network/applicationSecurityGroups/joinIpConfiguration/action",
	},
	// With other disks than the boot disk.
	"gcp": {"compute.disks.delete", "compute.disks.get", "compute.disks.use"},
}

// TestModulesDoWithWhatOpenShiftGrants compares the modules with OpenShift's own CredentialsRequests.
func TestModulesDoWithWhatOpenShiftGrants(t *testing.T) {
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, one := range loaded {
		needed := one.Spec().Rights
		content, err := os.ReadFile(filepath.Join("testdata", one.Name()+".yaml"))
		if os.IsNotExist(err) && len(needed) == 0 {
			continue
		}
		compared++
		request := unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(content, &request.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		secret := types.NamespacedName{Namespace: of(request, "secretRef", "namespace"), Name: of(request, "secretRef", "name")}
		got := strings.Join(missing(needed, []unstructured.Unstructured{request}, secret), "\n")
		want := ""
		if len(beyond[one.Name()]) > 0 {
			want = "lacks " + strings.Join(beyond[one.Name()], ", ") + ";"
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("module %s: got %q, want %q", one.Name(), got, want)
		}
		for _, entry := range needed {
			if entry.Provider != needed[0].Provider || !slices.IsSortedFunc(entry.Actions, byName) {
				t.Errorf("module %s lists %v; want one cloud, sorted", one.Name(), entry)
			}
		}
	}
	if compared != 3 {
		t.Errorf("%d modules are compared, want those of AWS, Azure and Google Cloud", compared)
	}
}

// byName compares names as people sort them, whatever the case.
func byName(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }
