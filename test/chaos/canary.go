package chaos

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// canaries are unique secrets of the world, and searches for leaks of them.
type canaries struct {
	mu     sync.Mutex
	values map[string]string // from value to description
	// leaks were seen in arguments of processes.
	leaks map[string]bool

	stop context.CancelFunc
	done sync.WaitGroup
}

func newCanaries() *canaries {
	watching, stop := context.WithCancel(context.Background())
	c := &canaries{values: map[string]string{}, leaks: map[string]bool{}, stop: stop}
	c.done.Go(func() {
		for {
			select {
			case <-watching.Done():
				return
			case <-time.After(150 * time.Millisecond):
				c.watchArguments()
			}
		}
	})
	return c
}

func (c *canaries) close() {
	c.stop()
	c.done.Wait()
}

// fresh creates a secret.
func (c *canaries) fresh(what string) string {
	value := "canary-" + randomText()
	c.add(what, value)
	return value
}

func (c *canaries) add(what, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[value] = what
}

// in returns the descriptions of the secrets that a text contains, in plain or base64.
func (c *canaries) in(text []byte) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for value, what := range c.values {
		encoded := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "=")
		// The last character depends on what follows.
		if bytes.Contains(text, []byte(value)) || bytes.Contains(text, []byte(encoded[:len(encoded)-1])) {
			found = append(found, what)
		}
	}
	return found
}

func (c *canaries) watchArguments() {
	running, err := observe.Processes()
	if err != nil {
		return
	}
	for _, process := range running {
		for _, what := range c.in([]byte(strings.Join(process.Arguments, " "))) {
			c.mu.Lock()
			c.leaks[fmt.Sprintf("%s in the arguments of %s", what, process.Name)] = true
			c.mu.Unlock()
		}
	}
}

// arguments returns and clears the leaks in arguments.
func (c *canaries) arguments() []Violation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Violation
	for leak := range c.leaks {
		found = append(found, Violation{Leaked, leak})
	}
	c.leaks = map[string]bool{}
	return found
}

// ofProvider matches the credential files of a warm provider, which has them as long as it runs.
var ofProvider = regexp.MustCompile(`/providers/\d+/secret-files/`)

// files searches a folder, except binaries, which cannot contain secrets.
func (c *canaries) files(folder string) []Violation {
	const binary = 8 << 20
	var found []Violation
	// files that vanish meanwhile cannot leak
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || ofProvider.MatchString(path) {
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > binary {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		for _, what := range c.in(content) {
			found = append(found, Violation{Leaked, fmt.Sprintf("%s in file %s", what, path)})
		}
		return nil
	})
	return found
}

// leaks searches the round's logs and files for secrets.
func (w *world) leaks(ctx context.Context, logsFrom map[string]int64) []Violation {
	found := w.canaries.arguments()
	for _, r := range w.replicas {
		text := readFrom(r.log(), logsFrom[r.name])
		for _, what := range w.canaries.in(text) {
			found = append(found, Violation{Leaked, fmt.Sprintf("%s in %s", what, r.log())})
		}
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(line, []byte("panic:")) || bytes.HasPrefix(line, []byte("fatal error:")) ||
				bytes.Contains(line, []byte("Observed a panic")) {
				found = append(found, Violation{Failed, fmt.Sprintf("manager %s: %s", r.name, line)})
			}
		}
		found = append(found, w.canaries.files(r.workDir())...)
	}
	var events eventsv1.EventList
	var machines machinev1beta1.MachineList
	var sets machinev1beta1.MachineSetList
	for what, list := range map[string]client.ObjectList{
		"events": &events, "Machines": &machines, "MachineSets": &sets,
	} {
		if err := w.client.List(ctx, list, client.InNamespace(lab.Namespace)); err != nil {
			continue
		}
		text, err := json.Marshal(list)
		if err != nil {
			continue
		}
		for _, leaked := range w.canaries.in(text) {
			found = append(found, Violation{Leaked, fmt.Sprintf("%s in %s", leaked, what)})
		}
	}
	return found
}

// readFrom returns a file's content from an offset.
func readFrom(path string, offset int64) []byte {
	content, err := os.ReadFile(path)
	if err != nil || int64(len(content)) < offset {
		return content
	}
	return content[offset:]
}
