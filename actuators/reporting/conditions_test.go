package reporting

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

func TestDriftCondition(t *testing.T) {
	at := time.Unix(1700000000, 0)
	changed := &record.DriftCheck{At: at, Result: record.DriftChanged, Summary: "thing.this would change"}
	for name, tc := range map[string]struct {
		drift      lifecycle.DriftSetting
		record     record.Record
		wantStatus metav1.ConditionStatus
		wantReason string
		want       []string
	}{
		"none before the first check":          {lifecycle.DriftSetting{Policy: v1alpha1.DriftReport}, record.Record{}, "", "", nil},
		"as applied":                           {lifecycle.DriftSetting{Policy: v1alpha1.DriftReport}, record.Record{Check: &record.DriftCheck{At: at, Result: record.DriftNone}}, metav1.ConditionFalse, "AsApplied", nil},
		"drift that is reported":               {lifecycle.DriftSetting{Policy: v1alpha1.DriftReport}, record.Record{Check: changed, Repair: &record.Repair{At: at, Count: 2}}, metav1.ConditionTrue, "InstanceChanged", []string{"thing.this would change"}},
		"drift that comes back":                {lifecycle.DriftSetting{Policy: v1alpha1.DriftRepair}, record.Record{Check: changed, Repair: &record.Repair{At: at, Count: 2}}, metav1.ConditionTrue, "InstanceChanged", []string{"2 times", "after 2023-11-15T02:13:20Z"}},
		"drift that cannot be repaired":        {lifecycle.DriftSetting{Policy: v1alpha1.DriftRepair}, record.Record{Check: changed, Repair: &record.Repair{At: at, Count: 1, Refused: "it would be replaced"}}, metav1.ConditionTrue, "InstanceChanged", []string{"not repaired: it would be replaced"}},
		"a policy that is none":                {lifecycle.DriftSetting{Policy: v1alpha1.DriftReport, Misread: "write Report"}, record.Record{Check: changed}, metav1.ConditionTrue, "InstanceChanged", []string{"write Report; until that is fixed"}},
		"drift that is ignored":                {lifecycle.DriftSetting{Policy: v1alpha1.DriftIgnore}, record.Record{Check: changed}, metav1.ConditionUnknown, "Ignored", []string{"Ignore"}},
		"drift that was never looked for":      {lifecycle.DriftSetting{Policy: v1alpha1.DriftIgnore}, record.Record{}, metav1.ConditionUnknown, "Ignored", nil},
		"an instance that was seen to be gone": {lifecycle.DriftSetting{Policy: v1alpha1.DriftIgnore}, record.Record{Check: &record.DriftCheck{At: at, Result: record.DriftMissing}}, metav1.ConditionTrue, "InstanceMissing", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := DriftCondition(&lifecycle.Facts{Drift: tc.drift, Record: tc.record}, time.Hour, at)
			if got == nil {
				got = &metav1.Condition{}
			}
			if got.Status != tc.wantStatus || got.Reason != tc.wantReason {
				t.Errorf("got %s %s, want %s %s", got.Status, got.Reason, tc.wantStatus, tc.wantReason)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q lacks %q", got.Message, want)
				}
			}
		})
	}
}
