package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func TestDead(t *testing.T) {
	cases := map[string]struct {
		stat procfs.ProcStat
		want bool
	}{
		"a process that sleeps":                        {stat: procfs.ProcStat{State: "S", NumThreads: 1}},
		"a zombie":                                     {stat: procfs.ProcStat{State: "Z", NumThreads: 1}, want: true},
		"a process that is being removed":              {stat: procfs.ProcStat{State: "X", NumThreads: 0}, want: true},
		"a zombie whose other threads have not ended":  {stat: procfs.ProcStat{State: "Z", NumThreads: 2}},
		"a process with threads whose first one works": {stat: procfs.ProcStat{State: "R", NumThreads: 9}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := dead(tc.stat); got != tc.want {
				t.Errorf("dead is %v, want %v", got, tc.want)
			}
		})
	}
}

// child runs a shell script until the test ends, and reaps it as launch does.
func child(t *testing.T, script string) (process, <-chan struct{}) {
	t.Helper()
	command := exec.Command("sh", "-c", script)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatalf("waiting for the child to say that it runs: %v", err)
	}
	identity, err := identify(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(reaped)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may be gone
		<-reaped
	})
	return identity, reaped
}

const (
	obedient = "echo; exec sleep 60"
	stubborn = "trap '' TERM; echo; while :; do sleep 0.1; done"
)

func TestEndStopsTheProcess(t *testing.T) {
	cases := map[string]struct {
		script      string
		grace       time.Duration
		wantAtLeast time.Duration
	}{
		"one that obeys goes at once": {script: obedient, grace: time.Minute},
		"one that does not is killed after a time": {
			script: stubborn, grace: 300 * time.Millisecond, wantAtLeast: 300 * time.Millisecond,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			running, reaped := child(t, tc.script)
			begun := time.Now()
			if err := running.end(t.Context(), tc.grace); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took < tc.wantAtLeast || took > 30*time.Second {
				t.Errorf("it took %s, want at least %s and far less than the grace of %s", took,
					tc.wantAtLeast, tc.grace)
			}
			<-reaped
			if running.alive() {
				t.Error("it is alive after its end")
			}
			if err := running.end(t.Context(), tc.grace); err != nil {
				t.Errorf("ending it again: %v", err)
			}
		})
	}
}

func TestAnotherProcessWithThePidIsLeftAlone(t *testing.T) {
	running, reaped := child(t, obedient)
	cases := map[string]process{
		"a pid that was reused in this boot": {
			PID: running.PID, StartTicks: running.StartTicks - 1, BootID: running.BootID,
		},
		"a pid and start time of an earlier one": {
			PID: running.PID, StartTicks: running.StartTicks, BootID: "an earlier boot",
		},
		"no pid":                {BootID: running.BootID},
		"a pid that nobody has": {PID: 1 << 30, BootID: running.BootID},
	}
	for name, remembered := range cases {
		t.Run(name, func(t *testing.T) {
			if remembered.alive() {
				t.Error("it counts as alive")
			}
			if err := remembered.end(t.Context(), 0); err != nil {
				t.Errorf("ending it: %v", err)
			}
		})
	}
	select {
	case <-reaped:
		t.Error("the process that has the pid now was ended")
	case <-time.After(200 * time.Millisecond):
	}
	if !running.alive() {
		t.Error("the process that has the pid now does not count as alive")
	}
}

func TestZombieIsNotAlive(t *testing.T) {
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	running, err := identify(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if gone, err := running.waitGone(t.Context(), 10*time.Second); !gone || err != nil {
		t.Errorf("an unreaped process counts as alive (%v)", err)
	}
	if _, err := readStat(running.PID); err != nil {
		t.Errorf("the process is no zombie, so the test shows nothing: %v", err)
	}
	_ = command.Wait() // it was killed
}

func TestEndGivesUpWithTheContext(t *testing.T) {
	running, _ := child(t, stubborn)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := running.end(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want the deadline's", err)
	}
}

func TestLaunchKeepsThePreviousLogAndReportsTheExit(t *testing.T) {
	l := fakeLayout(t, map[Component]string{Etcd: `echo "run $1"; env; exit 3`})
	for _, round := range []string{"one", "two"} {
		running, err := launch(l, Etcd, []string{round})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-running.exited:
			if err == nil || err.Error() != "exit status 3" {
				t.Errorf("it exited with %v, want exit status 3", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no exit was reported")
		}
	}
	for path, want := range map[string]string{l.log(Etcd): "run two", l.previousLog(Etcd): "run one"} {
		data, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(data), want+"\n") {
			t.Errorf("%s holds %q (%v), want %q first", path, data, err, want)
		}
		if !strings.Contains(string(data), "HOME="+l.home()) {
			t.Errorf("%s: HOME is not the cluster's own:\n%s", path, data)
		}
	}
}
