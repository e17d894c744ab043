//go:build bench

package bench

import (
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/process"
)

// meterEvery is how often processes are read. What one spends between the last time and its end is not known to be its own.
const meterEvery = 20 * time.Millisecond

// meter adds up what each program spends below a process.
type meter struct {
	root int
	// before is what processes had spent already, last what was read last, by their ids. Both are the meter's own until done is closed.
	before, last map[int]process.Process
	stop, done   chan struct{}
}

func newMeter(root int) *meter {
	m := &meter{root: root, last: map[int]process.Process{}, stop: make(chan struct{}), done: make(chan struct{})}
	m.before = m.read()
	go func() {
		defer close(m.done)
		for {
			for pid, now := range m.read() {
				m.last[pid] = now
			}
			select {
			case <-m.stop:
				return
			case <-time.After(meterEvery):
			}
		}
	}()
	return m
}

// read returns the processes below the root, named by their programs.
func (m *meter) read() map[int]process.Process {
	found := map[int]process.Process{}
	for _, p := range process.Tree(m.root) {
		if p.PID != m.root {
			p.Name = p.Program() // before it ends
			found[p.PID] = p
		}
	}
	return found
}

// end returns what was spent by program, by the names that a function gives programs.
func (m *meter) end(called func(program string) string) map[string]time.Duration {
	close(m.stop)
	<-m.done
	spent := map[string]time.Duration{}
	for pid, now := range m.last {
		spent[called(now.Name)] += now.Own - m.before[pid].Own
	}
	return spent
}

// Processes of a run of Pulumi.
const (
	pulumiCLI      = "CLI"
	pulumiLanguage = "language host"
	pulumiBridge   = "bridge"
	pulumiProvider = "provider"
	pulumiRest     = "processes as they begin and end"
)

// pulumiProcesses are all of them, in the order of the table.
var pulumiProcesses = []string{pulumiCLI, pulumiLanguage, pulumiBridge, pulumiProvider, pulumiRest}

// pulumiProcess returns what a program is in a run of Pulumi.
func pulumiProcess(program string) string {
	switch {
	case program == "pulumi":
		return pulumiCLI
	case strings.HasPrefix(program, "pulumi-language-"):
		return pulumiLanguage
	case strings.HasPrefix(program, "pulumi-resource-"):
		return pulumiBridge
	case strings.HasPrefix(program, "terraform-provider-"):
		return pulumiProvider
	default:
		return pulumiRest
	}
}
