package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

// Environment variables that tell a hostile program what to try, and where to report.
const (
	attacksVariable = "HOSTILE_ATTACKS"
	reportVariable  = "HOSTILE_REPORT"
)

// The names of hostile programs, which are links to the test binary.
const (
	providerFile = "terraform-provider-hostile_v1.0.0"
	pluginFile   = "pulumi-resource-hostile"
)

// attack is one attempt of a hostile program.
type attack struct {
	// Name says what would be exposed.
	Name string
	// How is read, list, follow, write, link, sockets, signal or trace; On is a path or a process.
	How, On string
}

// report contains the result of each attack: "" for success.
type report struct {
	Program, Folder string
	Outcomes        map[string]string
}

func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == providerFile || name == pluginFile {
		os.Exit(beHostile(name))
	}
	if path := os.Getenv(knockVariable); path != "" {
		if served(path, nil) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// knockVariable makes the test binary connect to a plugin's socket, and fail unless the plugin serves it.
const knockVariable = "HOSTILE_KNOCK"

// knocks reports whether a socket serves a process of a run.
func knocks(t *testing.T, confined *sandbox.Sandbox, run, path string) bool {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = []string{knockVariable + "=" + path}
	confined.Wrap(command, sandbox.Policy{Write: []string{run}})
	return command.Run() == nil
}

// beHostile tries its attacks, and reports the results. It serves nothing, so the engine fails.
func beHostile(name string) int {
	var attacks []attack
	if err := json.Unmarshal([]byte(os.Getenv(attacksVariable)), &attacks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	folder, _ := os.Getwd()
	sent := report{Program: name, Folder: folder, Outcomes: map[string]string{}}
	for _, one := range attacks {
		sent.Outcomes[one.Name] = ""
		if err := one.try(); err != nil {
			sent.Outcomes[one.Name] = err.Error()
		}
	}
	raw, err := json.Marshal(sent)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	response, err := http.Post(os.Getenv(reportVariable), "application/json", bytes.NewReader(raw))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = response.Body.Close()
	return 1
}

func (a attack) try() error {
	switch a.How {
	case "read":
		file, err := os.Open(a.On) // only open it: the start of a process's memory is unreadable
		if err != nil {
			return err
		}
		return file.Close()
	case "list":
		_, err := os.ReadDir(a.On + "/.")
		return err
	case "follow":
		_, err := os.Readlink(a.On)
		return err
	case "write":
		return os.WriteFile(filepath.Join(a.On, "left-behind"), []byte("x"), 0o600)
	case "sockets":
		return trySockets(a.On)
	case "link":
		link := filepath.Join(os.TempDir(), "link"+strconv.Itoa(os.Getpid()))
		if err := os.Symlink(a.On, link); err != nil {
			return err
		}
		_, err := os.ReadFile(link)
		return err
	}
	process, err := strconv.Atoi(a.On)
	if err != nil {
		return err
	}
	if a.How == "signal" {
		return syscall.Kill(process, syscall.SIGCONT) // harmless, but requires the right to kill
	}
	// Requires the same right as tracing, but stops nothing. Nothing is mapped at the address, which the kernel checks
	// after the right.
	_, err = unix.ProcessVMReadv(process, []unix.Iovec{{Base: new(byte), Len: 1}},
		[]unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

// collector receives the reports of hostile programs.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	reports []report
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var sent report
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reports = append(c.reports, sent)
	}))
	t.Cleanup(c.Close)
	return c
}

// environment returns a hostile program's environment.
func (c *collector) environment(t *testing.T, attacks []attack) map[string]string {
	t.Helper()
	raw, err := json.Marshal(attacks)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{attacksVariable: string(raw), reportVariable: c.URL}
}

// check expects that all attacks are denied, or that all succeed.
func (c *collector) check(t *testing.T, attacks []attack, denied bool) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.reports) == 0 {
		t.Fatal("no hostile program has run")
	}
	for _, sent := range c.reports {
		for _, one := range attacks {
			outcome, tried := sent.Outcomes[one.Name]
			stopped := strings.Contains(outcome, "permission denied") ||
				strings.Contains(outcome, "operation not permitted")
			if !tried || denied != stopped || !denied && outcome != "" {
				t.Errorf("%s in %s: %s (%s %s): %q; to be denied: %t", sent.Program, filepath.Base(sent.Folder),
					one.Name, one.How, one.On, outcome, denied)
			}
		}
	}
}

// asProgram links the test binary into a folder as a hostile program.
func asProgram(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(own, filepath.Join(dir, name)) == nil {
		return
	}
	raw, err := os.ReadFile(own)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), raw, 0o700) //nolint:gosec // it is to be run
	}
	if err != nil {
		t.Fatal(err)
	}
}
