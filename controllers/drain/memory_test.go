package drain

import (
	"testing"
	"time"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestRetries(t *testing.T) {
	steps := backoff{base: 5 * time.Second, limit: 2 * time.Minute}
	tcs := map[string]struct {
		before retry
		came   outcome
		want   retry
	}{
		"a first pass that leaves pods":                {retry{}, outcome{left: 3}, retry{1, 3, now.Add(5 * time.Second)}},
		"a second doubles the pause":                   {retry{failures: 1, left: 3}, outcome{left: 3}, retry{2, 3, now.Add(10 * time.Second)}},
		"more pods than before are no progress":        {retry{failures: 2, left: 3}, outcome{left: 4}, retry{3, 4, now.Add(20 * time.Second)}},
		"pauses end at the limit":                      {retry{failures: 40, left: 3}, outcome{left: 3}, retry{41, 3, now.Add(2 * time.Minute)}},
		"pods that go bring the pause down":            {retry{failures: 9, left: 3}, outcome{left: 2}, retry{1, 2, now.Add(5 * time.Second)}},
		"another's turn is asked for steadily":         {retry{failures: 2, left: 1}, outcome{kind: controlPlaneBusy}, retry{2, 1, now.Add(20 * time.Second)}},
		"a cordon that failed is tried again steadily": {retry{}, outcome{kind: cordonFailed}, retry{0, 0, now.Add(20 * time.Second)}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := tc.before.next(tc.came, now, steps); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
