//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	lease = 15 * time.Second
	// stopTimeout bounds the manager's shutdown: two minutes for engines, one for itself.
	stopTimeout = 3 * time.Minute
	// Shorter than a kubelet's.
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Second
)

// flagsVariable is the environment variable with additional flags for every manager, to test another configuration.
const flagsVariable = "E2E_MANAGER_FLAGS"

// Tests may delay a heartbeat by a second on a busy machine, so the lease has more slack than by default.
var managerFlags = append([]string{
	"--leader-elect-lease-duration=" + lease.String(), "--leader-elect-renew-deadline=8s",
	"--leader-elect-retry-period=2s",
	"--max-concurrent-runs=8", "--cluster-id=" + clusterID, "--adoption=OnRequest",
},
	strings.Fields(os.Getenv(flagsVariable))...)

// pod keeps a manager running and restarts it when it ends, as a kubelet does.
type pod struct {
	lab *lab.Lab
	// flags are added to managerFlags.
	flags []string

	mu      sync.Mutex
	manager *lab.Manager
	wanted  bool
	// killed means that a test causes the next end.
	killed bool
	ends   []string
	kept   sync.WaitGroup
	stop   context.CancelFunc
}

func newPod(l *lab.Lab, flags ...string) *pod { return &pod{lab: l, flags: flags} }

// start starts the manager with more flags, and waits until it is ready.
func (p *pod) start(ctx context.Context, flags ...string) {
	GinkgoHelper()
	manager, err := p.lab.StartManager(ctx, slices.Concat(managerFlags, p.flags, flags)...)
	Expect(err).NotTo(HaveOccurred())
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.mu.Lock()
	p.manager, p.wanted, p.killed, p.stop = manager, true, false, stop
	p.mu.Unlock()
	p.kept.Go(func() { p.keep(keeping, manager) })
}

// restart stops the manager and starts it with other flags.
func (p *pod) restart(ctx context.Context, flags ...string) {
	GinkgoHelper()
	p.terminate()
	p.start(ctx, flags...)
}

// terminate stops the manager as a kubelet does, and returns its exit state and how long it took.
func (p *pod) terminate() (*os.ProcessState, time.Duration) {
	GinkgoHelper()
	asked := time.Now()
	Expect(p.end()).To(Succeed())
	return p.current().State(), time.Since(asked)
}

// end stops the manager unless it has ended.
func (p *pod) end() error {
	p.mu.Lock()
	manager, stop := p.manager, p.stop
	p.wanted = false
	p.mu.Unlock()
	if manager == nil {
		return nil
	}
	err := manager.Stop(stopTimeout)
	stop()
	p.kept.Wait()
	return err
}

// kill kills the manager, which is restarted a moment later.
func (p *pod) kill() {
	GinkgoHelper()
	p.mu.Lock()
	p.killed = true
	manager := p.manager
	p.mu.Unlock()
	Expect(manager.Kill()).To(Succeed())
	say("    the manager is killed")
}

// keep restarts the manager whenever it ends, until it is stopped.
func (p *pod) keep(ctx context.Context, manager *lab.Manager) {
	for {
		<-manager.Ended()
		if !p.ended(manager) {
			return
		}
		next := p.again(ctx, manager)
		if next == nil {
			return
		}
		manager = next
	}
}

// ended records an end, and reports whether to restart the manager.
func (p *pod) ended(manager *lab.Manager) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted && !p.killed {
		p.ends = append(p.ends, fmt.Sprintf("%s after %.1f s", manager.State(), time.Since(begun).Seconds()))
		say("    the manager has ended by itself: %s", manager.State())
	}
	p.killed = false
	return p.wanted
}

// again retries until a manager is ready. It returns nil if the pod was stopped.
func (p *pod) again(ctx context.Context, manager *lab.Manager) *lab.Manager {
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff):
		}
		next, err := manager.Restart(ctx)
		if err != nil {
			say("    starting the manager again: %s", firstLine(err.Error()))
			continue
		}
		if p.adopt(next) {
			say("    the manager runs again")
			return next
		}
		_ = next.Stop(stopTimeout) // the pod was stopped meanwhile
		return nil
	}
}

func (p *pod) adopt(next *lab.Manager) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted {
		p.manager = next
	}
	return p.wanted
}

func (p *pod) current() *lab.Manager {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.manager
}

// unexpected returns the ends that no test caused.
func (p *pod) unexpected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ends)
}

// forgive clears them, if a test caused them indirectly.
func (p *pod) forgive() (ends int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ends, p.ends = len(p.ends), nil
	return ends
}

// arguments returns the running manager's arguments.
func (p *pod) arguments() []string {
	GinkgoHelper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.current().PID()))
	Expect(err).NotTo(HaveOccurred())
	return strings.Split(string(line), "\x00")
}

func (p *pod) log() string     { return filepath.Join(p.lab.Dir(), "logs", "manager.log") }
func (p *pod) workDir() string { return filepath.Join(p.lab.Dir(), "work") }

type section struct{ from, to int64 }

// logged returns the length of the manager's log.
func (p *pod) logged() int64 {
	GinkgoHelper()
	info, err := os.Stat(p.log())
	Expect(err).NotTo(HaveOccurred())
	return info.Size()
}
