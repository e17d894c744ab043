package tofu

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
)

// silent is an infrastructure that takes requests and does not respond.
type silent struct {
	*httptest.Server
	reached atomic.Int64
}

func newSilent(t *testing.T) *silent {
	t.Helper()
	s := &silent{}
	lifted := make(chan struct{})
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.reached.Add(1)
		select {
		case <-lifted:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(lifted)
		s.Close()
	})
	return s
}

// module returns a module whose instances are there.
func (s *silent) module() Module {
	return Module{Digest: "silent", Files: files(map[string]string{
		"main.tf": strings.Replace(object, "https://127.0.0.1:1", s.URL, 1), lockFile: objectLock + "}\n",
	})}
}

// warmPID returns the process of a run's warm provider.
func warmPID(t *testing.T, f *Workspace) int {
	t.Helper()
	plan(t, f, PlanOptions{Out: true})
	for _, config := range f.lease.Reattach() {
		return config.Pid
	}
	t.Fatal("the run has no warm provider")
	return 0
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestARunWhoseWarmProviderFails has providers die and hang while they make an instance.
func TestARunWhoseWarmProviderFails(t *testing.T) {
	for name, tc := range map[string]struct {
		signal syscall.Signal
		// interrupts says that the run is interrupted, as it is at its deadline: nothing else ends it.
		interrupts bool
	}{
		"it crashes": {signal: syscall.SIGSEGV},
		"it is shot": {signal: syscall.SIGKILL},
		"it hangs":   {signal: syscall.SIGSTOP, interrupts: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, func(o *Options) {
				o.ProviderMirror, o.Warm.Max, o.WaitDelay = mirrorForTests(t), 1, time.Second
			})
			infrastructure, backend := newSilent(t), newBackend(t)
			prepare(t, e, infrastructure.module())
			spec := RunSpec{ID: "r-1", Module: "silent", Backend: backend.at("m"), Variables: []byte(`{"name":"x"}`)}
			making := false
			spec.Progress = func(event engine.Event) {
				making = making || event.Kind == engine.EventStarted && event.Action == engine.ActionCreate
			}
			f := open(t, e, spec)
			pid := warmPID(t, f)
			ctx, interrupt := context.WithCancelCause(t.Context())
			defer interrupt(nil)
			go func() {
				for infrastructure.reached.Load() == 0 && ctx.Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				_ = syscall.Kill(pid, tc.signal)
				if tc.interrupts {
					interrupt(errors.New("it takes too long"))
				}
			}()
			_, err := f.ApplyPlan(ctx)
			if class := failure.ClassOf(err); class != failure.Killed || !making {
				t.Errorf("the error is %v (%s), making is %t; want what a killed run leaves", err, class, making)
			}
			if !gone(pid) {
				t.Error("the provider goes on after the run that it failed")
			}
			closeNow(t, f)
			spec.ID = "r-2"
			next := open(t, e, spec)
			if other := warmPID(t, next); other == pid || gone(other) {
				t.Errorf("the next run has the provider process %d, want a new one", other)
			}
		})
	}
}

// TestAWarmProviderThatFailsBetweenRuns is replaced, and no run fails for it.
func TestAWarmProviderThatFailsBetweenRuns(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.ProviderMirror, o.Warm.Max = mirrorForTests(t), 1 })
	backend := newBackend(t)
	prepare(t, e, objectModule(objectLock+"}\n"))
	var pid int
	for i, signal := range []syscall.Signal{0, syscall.SIGKILL, syscall.SIGSTOP} {
		switch signal {
		case 0:
		case syscall.SIGSTOP:
			parentdeath.Stop(t, pid)
		default:
			if err := syscall.Kill(pid, signal); err != nil {
				t.Fatal(err)
			}
		}
		f := open(t, e, RunSpec{ID: "r-" + string(rune('a'+i)), Module: "object", Backend: backend.at("m"), Variables: []byte(`{"name":"x"}`)})
		before := pid
		if pid = warmPID(t, f); pid == before {
			t.Errorf("signal %d: the provider process %d serves another run", signal, pid)
		}
		closeNow(t, f)
		if before != 0 {
			eventually(t, "the provider that failed is gone", func() bool { return gone(before) })
		}
	}
}

// TestRunsWithOtherCredentialsEndTheirWarmProviders has a Secret change between runs.
func TestRunsWithOtherCredentialsEndTheirWarmProviders(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.ProviderMirror, o.Warm.Max = mirrorForTests(t), 4 })
	backend := newBackend(t)
	prepare(t, e, objectModule(objectLock+"}\n"))
	run := func(id, secret, token string) int {
		f := open(t, e, RunSpec{ID: id, Module: "object", Backend: backend.at("m"), Variables: []byte(`{"name":"x"}`),
			Credentials: secret, Environment: map[string]string{"TOKEN": token}})
		defer closeNow(t, f)
		return warmPID(t, f)
	}
	old, other := run("r-1", "ns/a", "one"), run("r-2", "ns/b", "one")
	if old == other {
		t.Error("two Secrets have one provider")
	}
	if now := run("r-3", "ns/a", "two"); now == old || now == other {
		t.Errorf("the new credentials have the provider process %d of others", now)
	}
	eventually(t, "the provider with the earlier credentials is gone", func() bool { return gone(old) })
	if gone(other) || run("r-4", "ns/b", "one") != other {
		t.Error("the provider of another Secret was ended as well")
	}
}
