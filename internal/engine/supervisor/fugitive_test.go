package supervisor

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// fugitiveVariable has the test binary be an engine whose provider flees: "start" is the engine, "middle" the parent that ends, "flee" the provider.
const fugitiveVariable = "SUPERVISOR_TEST_FUGITIVE"

// beFugitive does what a provider can do so that nobody finds it: it has no parent of its run's, a session and a process group of its own, another working folder, a
// life that is not its parent's, and what /proc has of it is not readable. It says its id when it has, and closes all that it has open.
func beFugitive(stage string) error {
	if stage != "flee" {
		next := exec.Command("/proc/self/exe")
		next.Env = []string{fugitiveVariable + "=" + map[string]string{"start": "middle", "middle": "flee"}[stage], "LOWER=" + os.Getenv("LOWER")}
		next.Stdout, next.Stderr, next.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
		if err := next.Start(); err != nil || stage == "middle" {
			return err
		}
		return next.Wait()
	}
	for _, err := range []error{os.Chdir("/"), unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)} {
		if err != nil {
			return err
		}
	}
	if os.Getenv("LOWER") != "" {
		for limit := range 16 { // all that there are
			var now unix.Rlimit
			if err := unix.Prlimit(0, limit, nil, &now); err != nil {
				return err
			}
			if limit == unix.RLIMIT_LOCKS || limit == unix.RLIMIT_RTTIME {
				now.Cur, now.Max = now.Max/2, now.Max/2
			}
			if err := unix.Prlimit(0, limit, &now, nil); err != nil {
				return err
			}
		}
	}
	fmt.Println(os.Getpid())
	for fd := range 64 {
		_ = unix.Close(fd) // most are not open
	}
	for {
		_ = unix.Pause() // interrupts are ignored
	}
}

// fugitive starts an engine in a sandbox of the manager's, whose provider flees, and returns the provider's id. The engine itself ends.
func (m *manager) fugitive(t *testing.T, dir string, lower bool) int {
	t.Helper()
	confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred, Work: m.dir})
	if err != nil {
		t.Fatal(err)
	}
	if confined.ABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	engine := exec.Command(os.Args[0])
	engine.Dir, engine.Env, engine.Stderr = dir, []string{fugitiveVariable + "=start"}, os.Stderr
	if lower {
		engine.Env = append(engine.Env, "LOWER=yes")
	}
	confined.Wrap(engine, sandbox.Policy{Write: []string{dir}})
	out, err := engine.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Wait(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if working, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd")); err == nil && working != "/" {
		t.Fatalf("it works in %s, and has not fled", working)
	}
	return pid
}

// runs reports whether a process is there that is no zombie.
func runs(pid int) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(raw), ") Z ")
}

func TestNoProviderIsLeftThatFlees(t *testing.T) {
	for name, lower := range map[string]bool{"with its mark": false, "with another mark": true} {
		t.Run(name, func(t *testing.T) {
			t.Run("of a manager that is killed", func(t *testing.T) {
				m := startManager(t)
				provider := m.fugitive(t, filepath.Join(m.dir, "runs"), lower)
				m.signal(t, syscall.SIGKILL)
				eventually(t, "the provider ends", func() bool { return !runs(provider) })
			})
			t.Run("of a manager whose supervisor is killed with it", func(t *testing.T) {
				m := startManager(t)
				provider := m.fugitive(t, filepath.Join(m.dir, "runs"), lower)
				for _, pid := range []int{m.supervisor(t), m.Process.Pid} {
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
				}
				_ = m.Wait()
				m.again(t)
				if runs(provider) {
					t.Error("the next manager runs beside it")
				}
			})
			t.Run("of a manager that stops", func(t *testing.T) {
				m := &manager{dir: shortdir.New(t)}
				s, err := Start(t.Context(), Options{Dir: m.dir, Timeout: processTimeout, Grace: processGrace, Active: func() bool { return true }})
				if err != nil {
					t.Fatal(err)
				}
				m.dir = s.options.Dir
				run := filepath.Join(m.dir, "run")
				if err := os.Mkdir(run, 0o700); err != nil {
					t.Fatal(err)
				}
				provider := m.fugitive(t, run, lower)
				left, err := s.Processes()
				if lower && !runs(provider) {
					t.Skip("a manager of another test has ended it: it is of no manager that is known")
				}
				if err != nil || len(left) != 1 || left[0] != provider {
					t.Errorf("%v are left (%v), want %d: the Lease would be given back", left, err, provider)
				}
				if killed, err := workdir.KillProcesses(run); err != nil || killed != 1 && !lower || runs(provider) {
					t.Errorf("%d of its run were killed (%v); it runs: %t", killed, err, runs(provider))
				}
				if err := s.Stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAnotherManagersProviderIsLeftAlone(t *testing.T) {
	m, other := startManager(t), startManager(t)
	provider := other.fugitive(t, filepath.Join(other.dir, "runs"), false)
	m.signal(t, syscall.SIGKILL)
	eventually(t, "The supervisor exits", func() bool { return len(supervisors(m.dir)) == 0 })
	if !runs(provider) {
		t.Error("the provider of another manager was ended")
	}
}
