//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// nodeLog writes down every Node that there ever was.
type nodeLog struct {
	stop context.CancelFunc

	mu      sync.Mutex
	made    map[string][]types.UID
	present map[string]types.UID
}

func watchNodes(ctx context.Context, clients kubernetes.Interface) (*nodeLog, error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &nodeLog{stop: stop, made: map[string][]types.UID{}, present: map[string]types.UID{}}
	informer := informers.NewSharedInformerFactory(clients, 0).Core().V1().Nodes().Informer()
	// An API server that is away is part of the story, and no reason to write about it.
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
		return n, err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    n.see,
		UpdateFunc: func(_, now any) { n.see(now) },
		DeleteFunc: n.miss,
	})
	if err != nil {
		return n, err
	}
	go informer.RunWithContext(watching)
	syncing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !cache.WaitForCacheSync(syncing.Done(), informer.HasSynced) {
		return n, errors.New("watching Nodes: the API server did not list them within a minute")
	}
	return n, nil
}

func (n *nodeLog) close() { n.stop() }

func (n *nodeLog) see(object any) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.present[node.Name] = node.UID; !slices.Contains(n.made[node.Name], node.UID) {
		n.made[node.Name] = append(n.made[node.Name], node.UID)
	}
}

func (n *nodeLog) miss(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.present, node.Name)
}

// count answers how many Nodes there are.
func (n *nodeLog) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.present)
}

// uids answers those of all Nodes that ever had a name.
func (n *nodeLog) uids(name string) []types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.made[name])
}

// madeTwice answers the names of Nodes that were made more than once. A Node is named like its Machine, and no name comes twice.
func (n *nodeLog) madeTwice() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var twice []string
	for name, uids := range n.made {
		if len(uids) > 1 {
			twice = append(twice, fmt.Sprintf("%s: %v", name, uids))
		}
	}
	return twice
}

// engine is a process of an engine or a provider.
type engine struct {
	name, cwd string
	pid       int
}

func (e engine) String() string { return fmt.Sprintf("%s (pid %d in %s)", e.name, e.pid, e.cwd) }

// engines answers the engines and providers of this world: whatever has its working folder in the work folder, and every engine or
// provider whose parent is the manager.
func (w *world) engines() ([]engine, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	manager := 0
	if current := w.pod.current(); current != nil {
		manager = current.PID()
	}
	var found []engine
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == manager {
			continue
		}
		exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if err != nil {
			continue // gone, or a thread of the kernel
		}
		cwd, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil {
			continue
		}
		name := filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
		known := on.runsIt(name) || beside.runsIt(name) || strings.HasPrefix(name, "terraform-provider-")
		if strings.HasPrefix(cwd, w.pod.workDir()) || known && parentOf(entry.Name()) == manager {
			found = append(found, engine{name: name, cwd: cwd, pid: pid})
		}
	}
	return found, nil
}

// parentOf answers the second field behind the command's name in /proc/PID/stat.
func parentOf(pid string) int {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return -1
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return -1
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return -1
	}
	return parent
}

// atRest answers nil when no run has left a process or a folder. Providers that the manager keeps for the next run are none.
func (w *world) atRest() error {
	running, err := w.engines()
	if err != nil {
		return err
	}
	kept := filepath.Join(w.pod.workDir(), "providers")
	running = slices.DeleteFunc(running, func(e engine) bool { return strings.HasPrefix(e.cwd, kept) })
	if len(running) > 0 {
		return fmt.Errorf("%d processes are left, one is %s", len(running), running[0])
	}
	for _, engine := range machineries {
		entries, err := os.ReadDir(filepath.Join(w.pod.workDir(), engine.work))
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			return fmt.Errorf("%d folders are left in work/%s, one is %s", len(entries), engine.work, entries[0].Name())
		}
	}
	return nil
}

// metrics answers what the manager shows to those who may read its metrics.
func (w *world) metrics(ctx context.Context) string {
	GinkgoHelper()
	token, err := w.lab.MetricsToken(ctx)
	Expect(err).NotTo(HaveOccurred())
	status, text, err := w.pod.current().Scrape(ctx, token)
	Expect(err).NotTo(HaveOccurred())
	Expect(status).To(Equal(http.StatusOK), text)
	return text
}

// metric answers the sum of a metric's series, of which there must be one at least.
func (w *world) metric(ctx context.Context, name string) float64 {
	GinkgoHelper()
	text := w.metrics(ctx)
	Expect(text).To(MatchRegexp(`(?m)^%s[{ ]`, name))
	return lab.Sum(text, name)
}

// label is a label of a series as it is written.
func label(name, value string) string { return fmt.Sprintf("%s=%q", name, value) }

// series answers the lines of a metric whose labels have all of these.
func (w *world) series(ctx context.Context, name string, labels ...string) []string {
	GinkgoHelper()
	var found []string
	for line := range strings.Lines(w.metrics(ctx)) {
		base, _, _ := strings.Cut(line, " ")
		base, _, _ = strings.Cut(base, "{")
		lacks := func(label string) bool { return !strings.Contains(line, label) }
		if base == name && !slices.ContainsFunc(labels, lacks) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// shows answers the value of the one series of a metric that has these labels.
func (w *world) shows(ctx context.Context, name string, labels ...string) float64 {
	GinkgoHelper()
	found := w.series(ctx, name, labels...)
	Expect(found).To(HaveLen(1), "%s with %v", name, labels)
	return lab.Sum(found[0], name)
}
