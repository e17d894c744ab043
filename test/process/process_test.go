package process

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestAProcessAndItsDescendantsAreRead(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	all := Tree(os.Getpid())
	if len(all) == 0 || all[0].PID != os.Getpid() {
		t.Fatalf("got %+v, want this process first", all)
	}
	at := slices.IndexFunc(all, func(p Process) bool { return p.PID == child.Process.Pid })
	if at < 0 || all[at].Parent != os.Getpid() {
		t.Fatalf("got %+v, want the child %d", all, child.Process.Pid)
	}
	if peak, now := PeakMiB(os.Getpid()), MiB(os.Getpid()); peak <= 0 || now <= 0 {
		t.Errorf("got a peak of %f MiB, and %f MiB now", peak, now)
	}
	busy := exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	before := CPU(os.Getpid())
	if err := busy.Run(); err != nil {
		t.Fatal(err)
	}
	if spent := CPU(os.Getpid()) - before; spent <= 0 {
		t.Errorf("got %s for a child that has ended, want what it spent", spent)
	}
}
