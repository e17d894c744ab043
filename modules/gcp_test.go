package modules_test

import (
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// TestLicensesOfAGoogleDiskCauseAWarning covers a field that the Machine API does not have. Google's
// disks have it, so people write it, and machine-api-operator drops it silently.
func TestLicensesOfAGoogleDiskCauseAWarning(t *testing.T) {
	const licensed = `{"disks":[{"autoDelete":true,"boot":true,"image":"rhel","sizeGb":128,"licenses":["projects/p/global/licenses/rhel-9"]}]}`
	warnings, err := render.Check(render.Input{
		Machine: exampleMachine(t, "gcp", licensed), ClusterID: "demo-x7k2p", Module: keptIn(t, "gcp").Module,
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "spec.providerSpec.value.disks[0].licenses: unknown field, ignored"
	if len(warnings) != 1 || warnings[0].String() != want {
		t.Errorf("got the warnings %v, want %q", warnings, want)
	}
}
