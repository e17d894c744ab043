package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGarbageIsCollectedEarlierWhereMuchIsInUse(t *testing.T) {
	for name, tc := range map[string]struct {
		reading bool
		inUse   uint64
		want    int
	}{
		"little is in use":        {false, largeHeap - 1, usualGarbage},
		"much is in use":          {false, largeHeap, littleGarbage},
		"all is still being read": {true, 0, leastGarbage},
		"much is being read":      {true, largeHeap, leastGarbage},
	} {
		if got := garbageFor(tc.reading, tc.inUse); got != tc.want {
			t.Errorf("%s: %d percent, want %d", name, got, tc.want)
		}
	}
	t.Setenv("GOGC", "100")
	if err := (garbage{}).Start(t.Context()); err != nil {
		t.Errorf("with GOGC: %v", err) // else it would not return
	}
}

// TestTheHeapIsMeasured: it is not in parallel with others, as it is about the whole process.
func TestTheHeapIsMeasured(t *testing.T) {
	if _, set := os.LookupEnv("GOGC"); set {
		t.Skip("GOGC is set, which counts")
	}
	before := debug.SetGCPercent(usualGarbage)
	defer debug.SetGCPercent(before)
	held := make([]byte, 2*largeHeap)
	runtime.GC()
	if inUse := heapInUse(); inUse < 2*largeHeap {
		t.Fatalf("%d bytes are in use, want those that are held", inUse)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := (garbage{}).Start(ctx); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetGCPercent(usualGarbage); got != littleGarbage {
		t.Errorf("garbage is collected at %d percent, want %d", got, littleGarbage)
	}
	runtime.KeepAlive(held)
}

// TestGarbageIsCollectedEarlierWhileAllIsRead: not in parallel with others either.
func TestGarbageIsCollectedEarlierWhileAllIsRead(t *testing.T) {
	if _, set := os.LookupEnv("GOGC"); set {
		t.Skip("GOGC is set, which counts")
	}
	before := debug.SetGCPercent(usualGarbage)
	defer debug.SetGCPercent(before)
	runtime.GC()
	if inUse := heapInUse(); inUse >= largeHeap {
		t.Fatalf("%d bytes are in use, want little", inUse)
	}
	for reading, want := range map[time.Duration]int{time.Hour: leastGarbage, 0: usualGarbage} {
		debug.SetGCPercent(usualGarbage)
		g := newGarbage(reading)
		if got := debug.SetGCPercent(usualGarbage); got != leastGarbage {
			t.Errorf("before it starts, garbage is collected at %d percent, want %d", got, leastGarbage)
		}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := g.Start(ctx)
		stop()
		if got := debug.SetGCPercent(usualGarbage); err != nil || got != want {
			t.Errorf("with %s to read, garbage is collected at %d percent (%v), want %d", reading, got, err, want)
		}
	}
}
