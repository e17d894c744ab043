package module_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestConstantsAreWithoutWhatTheClusterSays(t *testing.T) {
	loaded := moduletest.Load(t, moduletest.Change{"module.yaml", "  environment:\n", `  environment:
    - {name: EXAMPLE_CA, from: caBundleFile}
    - {name: EXAMPLE_CLOUD, from: azureCloud}
    - {name: EXAMPLE_HOST, from: azureResourceManagerHost}
    - {name: EXAMPLE_URL, from: serviceEndpoint.aws.resource-groups}
    - {name: EXAMPLE_EMPTY}
`})
	if diff := cmp.Diff(map[string]string{"EXAMPLE_QUIET": "true", "EXAMPLE_EMPTY": ""}, loaded.Constants()); diff != "" {
		t.Errorf("constants (-want +got):\n%s", diff)
	}
	if got := loaded.Spec().Environment[3].From; got != v1alpha1.FromServiceEndpoint+"aws.resource-groups" {
		t.Errorf("the fourth variable is from %q", got)
	}
}
