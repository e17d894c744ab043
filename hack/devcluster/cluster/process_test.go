package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	tail := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 9876543210 20 21"
	cases := map[string]struct {
		line      string
		want      procStat
		wantError bool
	}{
		"a plain name": {
			line: "42 (etcd) S" + tail, want: procStat{state: 'S', threads: 17, startTicks: 9876543210},
		},
		"a name with blanks and parentheses": {
			line: "42 (a) Z (b c) R" + tail, want: procStat{state: 'R', threads: 17, startTicks: 9876543210},
		},
		"a zombie": {
			line: "42 (etcd) Z" + tail, want: procStat{state: 'Z', threads: 17, startTicks: 9876543210},
		},
		"a line that ends before the start": {line: "42 (etcd) S 1 2 3", wantError: true},
		"a line without a name":             {line: "42 etcd S" + tail, wantError: true},
		"a start time that is not a number": {
			line: "42 (etcd) S" + strings.Replace(tail, "9876543210", "soon", 1), wantError: true,
		},
		"a number of threads that is none": {
			line: "42 (etcd) S" + strings.Replace(tail, " 17 ", " many ", 1), wantError: true,
		},
		"an empty line":                {wantError: true},
		"a name and nothing behind it": {line: "42 (etcd)", wantError: true},
		"a line that ends right with the start": {
			line: "42 (etcd) S" + strings.TrimSuffix(tail, " 20 21"),
			want: procStat{state: 'S', threads: 17, startTicks: 9876543210},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(tc.line)
			if (err != nil) != tc.wantError || got != tc.want {
				t.Errorf("got %+v, %v; want %+v, error %v", got, err, tc.want, tc.wantError)
			}
		})
	}
}

func TestDead(t *testing.T) {
	cases := map[string]struct {
		stat procStat
		want bool
	}{
		"a process that sleeps":                        {stat: procStat{state: 'S', threads: 1}},
		"a zombie":                                     {stat: procStat{state: 'Z', threads: 1}, want: true},
		"a process that is being removed":              {stat: procStat{state: 'X', threads: 0}, want: true},
		"a zombie whose other threads have not ended":  {stat: procStat{state: 'Z', threads: 2}},
		"a process with threads whose first one works": {stat: procStat{state: 'R', threads: 9}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.stat.dead(); got != tc.want {
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
