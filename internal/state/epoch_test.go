package state

import "testing"

func TestEpochBefore(t *testing.T) {
	first := Epoch{Lease: "a", Transitions: 1, Holder: "one"}
	for name, tc := range map[string]struct {
		other Epoch
		want  bool
	}{
		"a later term of the same Lease":    {Epoch{Lease: "a", Transitions: 2, Holder: "two"}, true},
		"the same term":                     {first, false},
		"an earlier term":                   {Epoch{Lease: "a", Holder: "two"}, false},
		"a term of another Lease":           {Epoch{Lease: "b", Transitions: 9, Holder: "two"}, false},
		"a manager without leader election": {Epoch{Holder: "two"}, false},
	} {
		if got := first.Before(tc.other); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
	if (Epoch{Holder: "one"}).Before(Epoch{Transitions: 3}) {
		t.Error("epochs without a Lease have no order")
	}
}
