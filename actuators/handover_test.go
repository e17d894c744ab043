package actuators

import "testing"

func TestWhatAVerbLeavesIsHandedOnce(t *testing.T) {
	ctx := WithHandover(t.Context())
	HandOver(ctx, "machine", 7)
	if _, ok := Handed[int](ctx, "other"); ok {
		t.Error("something was handed that nobody left")
	}
	if got, ok := Handed[int](ctx, "machine"); !ok || got != 7 {
		t.Errorf("handed %d, %t, want 7", got, ok)
	}
	if _, ok := Handed[int](ctx, "machine"); ok {
		t.Error("it is handed a second time")
	}
	HandOver(t.Context(), "machine", 7)
	if _, ok := Handed[int](t.Context(), "machine"); ok {
		t.Error("something was handed where nothing is")
	}
}
