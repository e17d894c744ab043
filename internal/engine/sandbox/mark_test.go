package sandbox

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMarksDiffer(t *testing.T) {
	const infinite = ^uint64(0)
	for name, tc := range map[string]struct {
		locks, realTime uint64
		mark            Mark
		marked          bool
	}{
		"no limits":                    {infinite, infinite, 0, false},
		"a limit of the system's":      {1024, infinite, 0, false},
		"a mark":                       {5, markSum - 5, 5, true},
		"the other limit lowered":      {5, markSum - 6, changed, true},
		"one limit lowered":            {4, markSum - 5, changed, true},
		"both, to those of another":    {4, markSum - 5, changed, true},
		"limits that are no mark's":    {infinite - 1, 0, changed, true},
		"the mark of whose is unknown": {uint64(changed), markSum - uint64(changed), changed, true},
	} {
		if m, marked := fromLimits(tc.locks, tc.realTime); m != tc.mark || marked != tc.marked {
			t.Errorf("%s: %d, %t; want %d, %t", name, m, marked, tc.mark, tc.marked)
		}
	}
}

// TestNoProcessGetsRidOfItsMark has a process of a sandbox try to.
func TestNoProcessGetsRidOfItsMark(t *testing.T) {
	work := t.TempDir()
	s := confined(t, Options{Work: work})
	own, other := filepath.Join(work, "own"), filepath.Join(work, "other")
	for _, dir := range []string{own, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for what, want := range map[string]struct {
		says               string
		managed, in, admit bool
	}{
		"stay":  {"ok", true, true, true},
		"raise": {"operation not permitted", true, true, true},
		"lower": {"ok", true, true, false},
	} {
		command := exec.Command(os.Args[0], "mark", what)
		command.Env = []string{probeVariable + "=1"}
		s.Wrap(command, Policy{Write: []string{own}})
		in, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 100)
		n, err := out.Read(said)
		if got := strings.TrimSpace(string(said[:n])); err != nil || got != want.says {
			t.Errorf("%s: it says %q (%v), want %q", what, got, err, want.says)
		}
		pid := command.Process.Pid
		mark, marked := MarkOf(pid)
		if !marked || mark.Managed(work) != want.managed || mark.In(own) != want.in || s.Admits(own)(pid) != want.admit {
			t.Errorf("%s: its mark is %d (%t), of the manager %t, of its folder %t, admitted there %t",
				what, mark, marked, mark.Managed(work), mark.In(own), s.Admits(own)(pid))
		}
		if s.Admits(other)(pid) {
			t.Errorf("%s: it is admitted to what another run has", what)
		}
		if mark != changed && (mark.Managed(other) || mark.In(other)) {
			t.Errorf("%s: it counts as another's", what)
		}
		_ = in.Close()
		_ = command.Wait()
		if _, marked := MarkOf(pid); marked {
			t.Errorf("%s: a process that has ended has a mark", what)
		}
	}
	if _, marked := MarkOf(os.Getpid()); marked || s.Admits(own)(os.Getpid()) {
		t.Error("this process, which is not confined, is taken for one that is")
	}
}

// markedProbe changes the limits of this process, says how that went, and waits.
func markedProbe(what string) error {
	var now unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &now); err != nil {
		return err
	}
	switch what {
	case "raise":
		now.Max++
	case "lower":
		now.Max--
		now.Cur = now.Max
	}
	return unix.Prlimit(0, unix.RLIMIT_RTTIME, &now, nil)
}

func TestPeersAreKnown(t *testing.T) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	from, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if pid, err := Peer(to); err != nil || pid != os.Getpid() {
		t.Errorf("the other side is %d (%v), want this process", pid, err)
	}
}
