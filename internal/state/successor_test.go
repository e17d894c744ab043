package state

import (
	"errors"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

func TestCheckSuccessor(t *testing.T) {
	stored := &Snapshot{Raw: []byte("stored"), Serial: 5, Lineage: "l1"}
	cases := map[string]struct {
		stored     *Snapshot
		next       statefile.State
		raw        string
		wantSame   bool
		wantReason statefile.Reason
	}{
		"the first state may have any serial": {stored: &Snapshot{},
			next: statefile.State{Serial: 9, Lineage: "x"}},
		"a higher serial follows": {stored: stored, next: statefile.State{Serial: 6, Lineage: "l1"}},
		"the stored state again changes nothing": {stored: stored, next: statefile.State{Serial: 5, Lineage: "l1"},
			raw: "stored", wantSame: true},
		"other content of the same serial is refused": {stored: stored, next: statefile.State{Serial: 5, Lineage: "l1"},
			raw: "other", wantReason: statefile.ReasonSerial},
		"a lower serial is refused": {stored: stored, next: statefile.State{Serial: 4, Lineage: "l1"},
			wantReason: statefile.ReasonSerial},
		"another lineage is refused": {stored: stored, next: statefile.State{Serial: 6, Lineage: "l2"},
			wantReason: statefile.ReasonLineage},
		"another lineage is refused with the same serial": {stored: stored,
			next: statefile.State{Serial: 5, Lineage: "l2"},
			raw:  "stored", wantReason: statefile.ReasonLineage},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same, err := checkSuccessor(tc.stored, &tc.next, []byte(tc.raw))
			var reason statefile.Reason
			if refused, ok := errors.AsType[*statefile.RefusedError](err); ok {
				reason = refused.Reason
			}
			if same != tc.wantSame || reason != tc.wantReason {
				t.Errorf("got same=%t reason=%q (%v), want same=%t reason=%q", same, reason, err, tc.wantSame,
					tc.wantReason)
			}
		})
	}
}
