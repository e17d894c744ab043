package machineset

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestSlowStart(t *testing.T) {
	tcs := map[string]struct {
		total, limit, failAt int
		wantCalls            int
		wantError            string
	}{
		"nothing to do":                                {total: 0, limit: 8, failAt: -1, wantCalls: 0},
		"all go well":                                  {total: 20, limit: 8, failAt: -1, wantCalls: 20},
		"the first fails and no other is tried":        {total: 20, limit: 8, failAt: 0, wantCalls: 1, wantError: "call 0"},
		"the second batch fails and ends it":           {total: 20, limit: 8, failAt: 1, wantCalls: 3, wantError: "call 1"},
		"the third batch fails and is still completed": {total: 20, limit: 8, failAt: 4, wantCalls: 7, wantError: "call 4"},
		"the last batch is what is left":               {total: 5, limit: 8, failAt: 4, wantCalls: 5, wantError: "call 4"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			err := slowStart(t.Context(), tc.total, tc.limit, func(_ context.Context, i int) error {
				calls.Add(1)
				if i == tc.failAt {
					return fmt.Errorf("call %d", i)
				}
				return nil
			})
			if int(calls.Load()) != tc.wantCalls {
				t.Errorf("got %d calls, want %d", calls.Load(), tc.wantCalls)
			}
			if (err != nil) != (tc.wantError != "") || err != nil && err.Error() != tc.wantError {
				t.Errorf("got error %v, want %q", err, tc.wantError)
			}
		})
	}
}

func TestSlowStartGrowsToItsLimit(t *testing.T) {
	var (
		mu            sync.Mutex
		running, most int
		seen          = map[int]bool{}
	)
	err := slowStart(t.Context(), 50, 4, func(_ context.Context, i int) error {
		mu.Lock()
		running++
		most = max(most, running)
		seen[i] = true
		mu.Unlock()
		defer func() { mu.Lock(); running--; mu.Unlock() }()
		return nil
	})
	if err != nil || len(seen) != 50 || most > 4 {
		t.Errorf("got %v, %d different calls, %d at once; want 50 calls, at most 4 at once", err, len(seen), most)
	}
}

func TestSlowStartStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := slowStart(ctx, 10, 8, func(context.Context, int) error { calls++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("got %v after %d calls, want a cancelled context after 1", err, calls)
	}
}

func TestParallelSaysHowManyFailed(t *testing.T) {
	cause := errors.New("no")
	err := parallel(t.Context(), 5, 2, func(_ context.Context, i int) error {
		if i == 0 {
			return nil
		}
		return cause
	})
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "3 more failed") {
		t.Errorf("got %v, want the cause and that 3 more failed", err)
	}
}

func TestRefused(t *testing.T) {
	resource := machinev1beta1.Resource("machines")
	tcs := map[string]struct {
		err  error
		want bool
	}{
		"no error":                       {nil, false},
		"forbidden":                      {apierrors.NewForbidden(resource, "a", errors.New("no")), true},
		"invalid, wrapped":               {fmt.Errorf("x: %w", apierrors.NewBadRequest("no")), true},
		"a name that is taken":           {apierrors.NewAlreadyExists(resource, "a"), true},
		"too many requests":              {apierrors.NewTooManyRequestsError("slow"), true},
		"a timeout leaves it open":       {apierrors.NewTimeoutError("slow", 1), false},
		"a server error leaves it open":  {apierrors.NewInternalError(errors.New("oops")), false},
		"a broken connection does so":    {&net.OpError{Op: "read", Err: errors.New("reset")}, false},
		"a context that ended does also": {context.DeadlineExceeded, false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := refused(tc.err); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNewMachine(t *testing.T) {
	set := builder.MachineSet(func(s *machinev1beta1.MachineSet) {
		s.UID = "set"
		s.Annotations = map[string]string{"of": "the set"}
		s.Spec.Template.Annotations = map[string]string{"of": "the template"}
		s.Spec.Template.Spec.Labels = map[string]string{"of": "the node"}
		s.Spec.Template.Spec.LifecycleHooks.PreDrain = []machinev1beta1.LifecycleHook{{Name: "wait", Owner: "test"}}
	})
	machine := newMachine(set, "name")
	if machine.GenerateName != set.Name+"-" || machine.Name != "name" || machine.Namespace != set.Namespace {
		t.Errorf("got %s/%s (%s)", machine.Namespace, machine.Name, machine.GenerateName)
	}
	if machine.Annotations["of"] != "the template" || machine.Spec.Labels["of"] != "the node" || len(machine.Spec.LifecycleHooks.PreDrain) != 1 {
		t.Errorf("the template was not copied whole: %+v", machine)
	}
	machine.Labels["new"], machine.Spec.Labels["of"] = "label", "another"
	if set.Spec.Template.Labels["new"] != "" || set.Spec.Template.Spec.Labels["of"] != "the node" {
		t.Error("the Machine shares memory with the template")
	}
}

func TestGenerateName(t *testing.T) {
	tcs := map[string]struct {
		set, wantPrefix string
		wantLength      int
	}{
		"short": {"workers", "workers-", 13},
		"long":  {strings.Repeat("w", 100), strings.Repeat("w", 58), 63},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got := generateName(tc.set)
			if !strings.HasPrefix(got, tc.wantPrefix) || len(got) != tc.wantLength || got == generateName(tc.set) {
				t.Errorf("got %q, want %q and 5 random characters", got, tc.wantPrefix)
			}
		})
	}
}
