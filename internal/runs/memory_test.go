package runs

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// room is memory in which runs fit by their footprint's length.
type room struct {
	size, used int
	running    map[string]string
}

func (r *room) Fits(footprint string) bool { return r.used+len(footprint) <= r.size }

func (r *room) Started(run, footprint string) {
	r.running[run] = footprint
	r.used += len(footprint)
}

func (r *room) Ended(run string) {
	r.used -= len(r.running[run])
	delete(r.running, run)
}

// sized is a request for a run that takes a footprint's length.
func sized(name, footprint string) Request {
	return Request{Key: Key(name), Group: name, Operation: Create, Run: name, Footprint: footprint}
}

func TestRunsWaitForMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		size    int
		waiting []Request
		// ends is in which order runs end; want has what starts then.
		ends []string
		want []string
	}{
		"as many as fit run":                       {3, []Request{sized("a", "x"), sized("b", "xx"), sized("c", "x")}, []string{"a"}, []string{"a b", "c"}},
		"a run that is larger than all runs alone": {3, []Request{sized("a", "xxxx"), sized("b", "x")}, []string{"a"}, []string{"a", "b"}},
		"a small run does not pass a large one, which would never have its turn": {
			3, []Request{sized("a", "x"), sized("b", "xxx"), sized("c", "x")}, []string{"a", "b"}, []string{"a", "b", "c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory := &room{size: tc.size, running: map[string]string{}}
			pool := New(Options{MaxConcurrent: 8, Memory: memory})
			started := map[string]*run{}
			start := func() string {
				var names string
				for r := pool.admit(); r != nil; r = pool.admit() {
					started[r.Run] = r
					names += " " + r.Run
				}
				return names
			}
			for _, request := range tc.waiting {
				if _, err := pool.Submit(request); err != nil {
					t.Fatal(err)
				}
			}
			got := []string{start()}
			for _, ended := range tc.ends {
				pool.finish(started[ended], nil, false)
				got = append(got, start())
			}
			for i := range tc.want {
				tc.want[i] = " " + tc.want[i]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(memory.running) == 0 {
				t.Error("nothing runs at the end: " + fmt.Sprint(started))
			}
		})
	}
}
