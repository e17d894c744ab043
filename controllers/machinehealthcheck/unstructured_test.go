package machinehealthcheck

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestTyped(t *testing.T) {
	tcs := map[string]struct {
		field  []string
		value  any
		misfit string
	}{
		"what the type can hold is kept":                           {[]string{"spec", "nodeStartupTimeout"}, "30m", ""},
		"a timeout of 11,000 years, which the CRD's pattern takes": {[]string{"spec", "nodeStartupTimeout"}, "99999999h", `spec.nodeStartupTimeout is "99999999h"`},
		"a number beyond 32 bits":                                  {[]string{"spec", "maxUnhealthy"}, int64(99999999999), "spec.maxUnhealthy is 99999999999"},
		"a number that fits":                                       {[]string{"spec", "maxUnhealthy"}, int64(2), ""},
		"a condition's timeout without a number": {
			[]string{"spec", "unhealthyConditions"},
			[]any{map[string]any{"type": "Ready", "status": "False", "timeout": "1m"}, map[string]any{"type": "Ready", "status": "False", "timeout": "m"}},
			`spec.unhealthyConditions[1].timeout is "m"`,
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			object := asWritten(t, builder.MachineHealthCheck())
			if err := unstructured.SetNestedField(object.Object, tc.value, tc.field...); err != nil {
				t.Fatal(err)
			}
			check, specErr, err := fromUnstructured(object)
			if err != nil || check.Name != object.GetName() {
				t.Fatalf("got %v, %v", check, err)
			}
			if tc.misfit == "" && specErr != nil || tc.misfit != "" && (specErr == nil || !strings.Contains(specErr.Error(), tc.misfit)) {
				t.Errorf("got %v, want %q", specErr, tc.misfit)
			}
			if kept, _, _ := unstructured.NestedFieldNoCopy(object.Object, tc.field...); kept == nil {
				t.Error("what was read belongs to the cache and must not change")
			}
		})
	}
}
