package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The variables by which a hostile program knows what to try, and where to send what came of it.
const (
	attacksVariable = "HOSTILE_ATTACKS"
	reportVariable  = "HOSTILE_REPORT"
)

// The names of hostile programs, each a link to this test.
const (
	providerFile = "terraform-provider-hostile_v1.0.0"
	pluginFile   = "pulumi-resource-hostile"
)

// attack is one thing that a hostile program tries.
type attack struct {
	// Name says what would be lost.
	Name string
	// How is read, list, follow, write, link, signal or trace; On is a path or a process.
	How, On string
}

// report is what came of a program's attacks: "" for one that succeeded.
type report struct {
	Program, Folder string
	Outcomes        map[string]string
}

func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == providerFile || name == pluginFile {
		os.Exit(beHostile(name))
	}
	os.Exit(m.Run())
}

// beHostile tries what it is asked to, and sends what came of it. It serves nothing, so that the engine fails.
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
		file, err := os.Open(a.On) // the beginning of a memory cannot be read, so that it is opened only
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
		return syscall.Kill(process, syscall.SIGCONT) // harmless, and needs the right to kill
	}
	// Like tracing, but it stops nothing. Nothing is mapped at the address, which is found out once it is allowed.
	_, err = unix.ProcessVMReadv(process, []unix.Iovec{{Base: new(byte), Len: 1}}, []unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

// collector takes the reports of hostile programs.
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

// environment is what a hostile program needs.
func (c *collector) environment(t *testing.T, attacks []attack) map[string]string {
	t.Helper()
	raw, err := json.Marshal(attacks)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{attacksVariable: string(raw), reportVariable: c.URL}
}

// check compares what came of the attacks with what must: all are denied, or all succeed.
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
			stopped := strings.Contains(outcome, "permission denied") || strings.Contains(outcome, "operation not permitted")
			if !tried || denied != stopped || !denied && outcome != "" {
				t.Errorf("%s in %s: %s (%s %s): %q; to be denied: %t", sent.Program, filepath.Base(sent.Folder), one.Name, one.How, one.On, outcome, denied)
			}
		}
	}
}

// asProgram puts this test into a folder under the name of a hostile program.
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
