package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

func TestWhenAnInstanceIsLookedAt(t *testing.T) {
	const every = 8 * time.Minute
	made := time.Unix(1700000000, 0)
	there := &Facts{
		State:  &statefile.State{Resources: []statefile.Resource{{Type: "thing", Name: "this", Instances: 1}}},
		Record: record.Record{Check: &record.DriftCheck{At: made, Result: record.DriftNone}},
	}
	gone := &Facts{State: there.State, Record: record.Record{Check: &record.DriftCheck{At: made, Result: record.DriftMissing}}}
	after := made.Add
	tests := map[string]struct {
		facts               *Facts
		policy              v1alpha1.DriftPolicy
		look                Look
		now                 time.Time
		wantLook, wantCheck bool
	}{
		"the module has no looks":                   {there, v1alpha1.DriftReport, Look{}, after(20 * time.Minute), false, false},
		"right after a drift check":                 {there, v1alpha1.DriftReport, Look{Every: every, Since: made}, after(7 * time.Minute), false, false},
		"an interval after a drift check":           {there, v1alpha1.DriftReport, Look{Every: every, Since: made}, after(9 * time.Minute), true, false},
		"an interval after the last look":           {there, v1alpha1.DriftReport, Look{Every: every, Made: true, Since: after(9 * time.Minute)}, after(18 * time.Minute), true, false},
		"not an interval after it":                  {there, v1alpha1.DriftReport, Look{Every: every, Made: true, Since: after(9 * time.Minute)}, after(16 * time.Minute), false, false},
		"a minute after a change of leaders":        {there, v1alpha1.DriftReport, Look{Every: every, Since: after(30 * time.Minute)}, after(31 * time.Minute), true, false},
		"drift is ignored":                          {there, v1alpha1.DriftIgnore, Look{Every: every, Since: made}, after(9 * time.Minute), true, false},
		"a look has found nothing":                  {there, v1alpha1.DriftReport, Look{Every: every, Made: true, Since: made, Gone: after(time.Minute)}, after(time.Minute), false, true},
		"the same where drift is ignored":           {there, v1alpha1.DriftIgnore, Look{Every: every, Made: true, Since: made, Gone: after(time.Minute)}, after(time.Minute), false, true},
		"a drift check has looked since":            {there, v1alpha1.DriftReport, Look{Every: every, Made: true, Since: made, Gone: after(-time.Minute)}, after(time.Minute), false, false},
		"a drift check has found that it is gone":   {gone, v1alpha1.DriftReport, Look{Every: every, Since: made}, after(9 * time.Minute), false, false},
		"a drift check is due before the next look": {there, v1alpha1.DriftReport, Look{Every: 4 * time.Hour, Since: made}, after(2 * time.Hour), false, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Schedule{interval: time.Hour, uid: "uid", policy: tc.policy, hasIP: true}.WithLook(tc.look)
			due := s.Due(tc.facts, tc.now)
			if due.Look != tc.wantLook || due.Check != tc.wantCheck {
				t.Errorf("look %t, drift check %t; want %t, %t", due.Look, due.Check, tc.wantLook, tc.wantCheck)
			}
		})
	}
}

func TestLooksAreSpreadAndRequeued(t *testing.T) {
	made := metav1.NewTime(time.Unix(1700000000, 0))
	status := &v1alpha1.TerraformMachineProviderStatus{LastDriftCheckTime: &made}
	look := Look{Every: 8 * time.Minute, Made: true, Since: made.Time}
	at := map[time.Time]bool{}
	for _, uid := range []string{"one", "two", "three", "four", "five"} {
		s := Schedule{interval: time.Hour, uid: uid, policy: v1alpha1.DriftReport, hasIP: true}
		next := s.WithLook(look).Next(status)
		if after := next.Sub(made.Time); after < 432*time.Second || after > 528*time.Second {
			t.Errorf("the next look is after %s, want 8 minutes, a tenth more or less", after)
		}
		if checked := s.Next(status); checked.Sub(made.Time) < 54*time.Minute {
			t.Errorf("without looks the next check is after %s", checked.Sub(made.Time))
		}
		at[next] = true
	}
	if len(at) < 4 {
		t.Errorf("looks are at %v: they are not spread", at)
	}
}

func TestALookHasMissedUntilTheNextIsMade(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		look Look
		want bool
	}{
		"none was made":             {Look{}, false},
		"it has found the instance": {Look{Since: at, Made: true}, false},
		"it has not":                {Look{Since: at, Made: true, Gone: at.Add(time.Second)}, true},
		"not even at once":          {Look{Since: at, Made: true, Gone: at}, true},
		"another was made since":    {Look{Since: at.Add(time.Minute), Made: true, Gone: at}, false},
	} {
		if got := tc.look.Missed(); got != tc.want {
			t.Errorf("%s: missed is %t, want %t", name, got, tc.want)
		}
	}
}
