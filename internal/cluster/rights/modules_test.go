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
	"aws":   {"ec2:DescribeInstanceAttribute", "ec2:DescribeVolumes"},
	"azure": {"Microsoft.Compute/disks/read"},
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
		if len(needed) != 1 || !slices.IsSorted(needed[0].Actions) && one.Name() != "aws" {
			t.Errorf("module %s lists %v; want one cloud, sorted", one.Name(), needed)
		}
	}
	if compared != 3 {
		t.Errorf("%d modules are compared, want those of AWS, Azure and Google Cloud", compared)
	}
}
