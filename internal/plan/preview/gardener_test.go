package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const gardenerPool = `apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: workers, namespace: shoot--demo}
spec:
  replicas: 3
  template:
    spec:
      class: {kind: MachineClass, name: small}
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: {name: small, namespace: shoot--demo}
provider: machine-iac
secretRef: {name: worker, namespace: shoot--demo}
providerSpec:
  apiVersion: kubemarkproviderconfig.openshift.io/v1alpha1
  kind: KubemarkMachineProviderConfig
  cpu: 2
`

func kubemarkCatalog(t *testing.T) *module.Catalog {
	t.Helper()
	return catalogOf(t, "../../../modules/kubemark")
}

func TestMachinesOfGardenerAreRead(t *testing.T) {
	files := []File{{Name: "pool.yaml", Content: []byte(gardenerPool)}}
	requests, skipped, err := Read(files, Cluster{}, kubemarkCatalog(t))
	if err != nil || len(requests) != 1 || len(skipped) != 0 {
		t.Fatalf("it reads %d requests, and skips %q: %v", len(requests), skipped, err)
	}
	request := requests[0]
	kind, namespace, name := request.Title()
	replicas, given := request.Replicas()
	if kind != "MachineDeployment" || namespace != "shoot--demo" || name != "workers" || replicas != 3 || !given ||
		request.Module.Name() != "kubemark" {
		t.Errorf("it is %s %s/%s of module %s with %d replicas", kind, namespace, name, request.Module.Name(), replicas)
	}
	want := []Secret{{Name: "worker", Role: "credentials"}, {Name: "workers-user-data", Role: "user data"}}
	if diff := cmp.Diff(want, request.Secrets); diff != "" {
		t.Errorf("the Secrets differ (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(request.Input.Variables), `"cpu":2`) {
		t.Errorf("the inputs are %s", request.Input.Variables)
	}
}

func TestWhatIsWrongWithMachinesOfGardener(t *testing.T) {
	cases := map[string]struct{ old, replacement, want string }{
		"a value": {"cpu: 2", "cpu: -2", "pool.yaml:18: document 2, MachineClass shoot--demo/small: " +
			"providerSpec.cpu"},
		"a class that is gone": {"name: small}", "name: large}",
			"spec.template.spec.class.name: there is no MachineClass large in the files"},
		"no class": {"class: {kind: MachineClass, name: small}", "class: {}",
			"spec.template.spec.class.name: it is required"},
		"no name":         {"{name: workers, ", "{", "metadata.name: it is required"},
		"no providerSpec": {"providerSpec:\n", "providerSpecs:\n", "providerSpec: it is no object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(gardenerPool, tc.old, tc.replacement, 1)
			_, _, err := Read([]File{{Name: "pool.yaml", Content: []byte(text)}}, Cluster{}, kubemarkCatalog(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestMachinesOfOtherProvidersAreSkipped(t *testing.T) {
	text := strings.Replace(gardenerPool, "provider: machine-iac", "provider: AWS", 1)
	requests, skipped, err := Read([]File{{Name: "pool.yaml", Content: []byte(text)}}, Cluster{}, kubemarkCatalog(t))
	if err != nil || len(requests) != 0 {
		t.Errorf("it reads %d requests: %v", len(requests), err)
	}
	if diff := cmp.Diff([]string{"MachineDeployment shoot--demo/workers in pool.yaml"}, skipped); diff != "" {
		t.Errorf("what is skipped differs (-want +got):\n%s", diff)
	}
}
