package orphans

import (
	"fmt"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

func TestOnlyWhatTwoInventoriesFoundOrphanedIsDestroyed(t *testing.T) {
	const grace = time.Hour
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		change func(one *lifecycle.OrphanedInstance)
		want   int
	}{
		"found a grace period ago":         {func(*lifecycle.OrphanedInstance) {}, 1},
		"found for the first time":         {func(one *lifecycle.OrphanedInstance) { one.FirstSeen = now }, 0},
		"found less than the period ago":   {func(one *lifecycle.OrphanedInstance) { one.FirstSeen = now.Add(time.Second - grace) }, 0},
		"younger than the period":          {func(one *lifecycle.OrphanedInstance) { one.Orphaned = false }, 0},
		"of no Machine, such as a bastion": {func(one *lifecycle.OrphanedInstance) { one.MachineUID = "" }, 0},
		"of another installation":          {func(one *lifecycle.OrphanedInstance) { one.Installation = "theirs" }, 0},
		"made before there was any":        {func(one *lifecycle.OrphanedInstance) { one.Installation = "" }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			one := orphaned("one", now.Add(-grace))
			tc.change(&one)
			report := &lifecycle.InventoryReport{Checked: now, Instances: []lifecycle.OrphanedInstance{one}}
			if got := destroyable(report, grace, ours); len(got) != tc.want {
				t.Errorf("want %d, got %v", tc.want, got)
			}
		})
	}
}

func TestNoGracePeriodStillTakesTwoInventories(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	report := &lifecycle.InventoryReport{Checked: now, Instances: []lifecycle.OrphanedInstance{orphaned("new", now), orphaned("old", now.Add(-time.Second))}}
	if got := destroyable(report, 0, ours); len(got) != 1 || got[0].Name != "old" {
		t.Errorf("want the one that an earlier inventory had, got %v", got)
	}
}

func TestAnInventoryDestroysAFewInstancesAtATime(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	report := &lifecycle.InventoryReport{Checked: now}
	for n := range 2*maxDestroyed + 1 {
		report.Instances = append(report.Instances, orphaned(fmt.Sprint(n), now.Add(-time.Hour)))
	}
	before := len(report.Instances)
	if got := destroyable(report, time.Minute, ours); len(got) != maxDestroyed || len(report.Instances) != before {
		t.Errorf("want %d of %d, got %d of %d", maxDestroyed, before, len(got), len(report.Instances))
	}
}

// ours is the UID of the installation.
const ours = "ours"

func orphaned(name string, seen time.Time) lifecycle.OrphanedInstance {
	return lifecycle.OrphanedInstance{
		ListedInstance: lifecycle.ListedInstance{ProviderID: "acme://" + name, Name: name, MachineUID: "of-" + name, Installation: ours}, FirstSeen: seen, Orphaned: true,
	}
}

func TestAnInstallationWithoutAnIdentityDestroysNothing(t *testing.T) {
	one := orphaned("one", time.Time{})
	one.Installation = ""
	report := &lifecycle.InventoryReport{Checked: time.Now(), Instances: []lifecycle.OrphanedInstance{one}}
	if got := destroyable(report, 0, ""); len(got) != 0 {
		t.Errorf("got %v, want none: that no UID is known is no proof", got)
	}
}
