package orphans

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// Whoever may write the Secret of a state, or the ConfigMap of the inventory, may write a time that
// never comes.
func TestAGracePeriodBeginsWithWhatIsSeen(t *testing.T) {
	const grace = time.Hour
	now, far := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	o := New(Options{Clock: clocktesting.NewFakePassiveClock(now), Policy: PolicyDelete, GracePeriod: grace})
	for given, want := range map[time.Time]time.Time{far: now, now.Add(record.MaxSkew): now.Add(record.MaxSkew), now.Add(-time.Minute): now.Add(-time.Minute)} {
		if got := o.withPolicy(record.OrphanMark{Since: given}); !got.Since.Equal(want) || !got.Destroy.IsZero() {
			t.Errorf("a state without a Machine since %s is one since %s (%+v), want %s", given, got.Since, got, want)
		}
	}
	report := &lifecycle.InventoryReport{Checked: now, Instances: []lifecycle.OrphanedInstance{orphaned("a", now), orphaned("b", now)}}
	last := &lifecycle.InventoryReport{Instances: []lifecycle.OrphanedInstance{orphaned("a", far), orphaned("b", now.Add(-2*grace))}}
	(&Inventory{Orphans: o}).compare(report, last, &lifecycle.Owners{})
	if a, b := report.Instances[0], report.Instances[1]; !a.FirstSeen.Equal(now) || !b.FirstSeen.Equal(now.Add(-2*grace)) || a.Orphaned || !b.Orphaned {
		t.Errorf("they are first seen at %s and %s", a.FirstSeen, b.FirstSeen)
	}
}
