package orphans

import (
	"testing"
	"time"
)

func TestTheSecondPassComesSoon(t *testing.T) {
	for _, test := range []struct {
		passes     int
		next, want time.Duration
	}{
		{1, interval, secondPass},
		{1, destroyInterval, destroyInterval},
		{2, interval, interval},
	} {
		if got := pause(test.passes, test.next); got != test.want {
			t.Errorf("after %d passes and %s: %s, want %s", test.passes, test.next, got, test.want)
		}
	}
}

func TestManyStatesAreLookedAtLessOften(t *testing.T) {
	for states, want := range map[int]time.Duration{0: interval, 2000: interval, 5000: 5 * time.Minute} {
		if got := intervalFor(states); got != want {
			t.Errorf("%d states are looked at every %s, want %s", states, got, want)
		}
	}
}
