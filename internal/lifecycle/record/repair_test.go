package record

import (
	"testing"
	"time"
)

func TestRepairsAreSpacedByTheIntervalHoweverLong(t *testing.T) {
	r := &Repair{At: time.Unix(0, 0), Count: 5}
	if got := r.Until(48 * time.Hour).Sub(r.At); got != 48*time.Hour {
		t.Errorf("the pause is %s, want the interval where that is longer than a day", got)
	}
}
