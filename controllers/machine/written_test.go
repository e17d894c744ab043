package machine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestWritesAreAheadUntilTheCacheHasThem(t *testing.T) {
	name := types.NamespacedName{Namespace: "default", Name: "worker"}
	start := time.Now()
	for title, tc := range map[string]struct {
		read  string
		after time.Duration
		want  bool
	}{
		"the cache has what was there before":    {"99", 0, true},
		"the cache has the write":                {"100", 0, false},
		"the cache has a later write of another": {"101", 0, false},
		"the Machine is gone":                    {"", 0, false},
		"not comparable":                         {"abc", 0, false},
		"etcd was restored":                      {"99", time.Minute, false},
	} {
		t.Run(title, func(t *testing.T) {
			var w writes
			if w.ahead(name, "1", start) {
				t.Error("ahead without a write")
			}
			w.add(name, "100", start)
			if got := w.ahead(name, tc.read, start.Add(tc.after)); got != tc.want {
				t.Errorf("ahead is %t, want %t", got, tc.want)
			}
			if left := len(w.pending) > 0; left != tc.want {
				t.Errorf("kept is %t, want %t", left, tc.want)
			}
		})
	}
}
