//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const (
	root = "../.."
	// patience bounds what takes seconds on an idle machine.
	patience = 2 * time.Minute
	poll     = 250 * time.Millisecond
)

var begun = time.Now()

// say prints progress at once.
func say(format string, values ...any) {
	fmt.Fprintf(os.Stdout, "%6.1fs  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, values...))
}

// world is a development cluster with the operator installed, and its observers.
type world struct {
	dir     string
	cluster *cluster.Cluster
	lab     *lab.Lab
	// client and clients are the administrator's, without a cache.
	client  client.Client
	clients kubernetes.Interface
	pod     *pod
	nodes   *observe.NodeLog
	proxy   *apiproxy.Proxy
	// userData must not appear in any log.
	userData string
	// away are the sections of the manager's log from when the API server was away.
	away []section
	// provoked are the times of intentionally forbidden requests.
	provoked []span
}

type span struct{ from, to time.Time }

func openWorld(ctx context.Context, dir string) (*world, error) {
	w := &world{dir: dir, userData: "user-data-" + randomText()}
	var err error
	if w.cluster, err = cluster.New(cluster.Options{Dir: dir, Bin: filepath.Join(root, "bin")}); err != nil {
		return w, err
	}
	opened, err := lab.Open(ctx, lab.Options{Root: root, Dir: dir, Progress: os.Stdout, Operator: true, Audit: true})
	if err != nil {
		return w, err
	}
	w.lab, w.cluster = opened, opened.Cluster
	config, err := opened.Cluster.AdminConfig()
	if err != nil {
		return w, err
	}
	config.QPS = -1 // tests poll the API server often
	scheme, err := controlplane.Scheme()
	if err != nil {
		return w, err
	}
	if w.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return w, err
	}
	if w.clients, err = kubernetes.NewForConfig(config); err != nil {
		return w, err
	}
	copied, err := w.copyModules()
	if err != nil {
		return w, err
	}
	w.pod = newPod(opened, copied...)
	if w.nodes, err = observe.WatchNodes(ctx, w.clients); err != nil {
		return w, err
	}
	authority, err := opened.Cluster.CAData()
	if err != nil {
		return w, err
	}
	if w.proxy, err = apiproxy.Open(opened.Cluster.Server(), authority); err != nil {
		return w, err
	}
	return w, w.makeSecrets(ctx)
}

// close stops everything. The data folder stays.
func (w *world) close(ctx context.Context) error {
	if w == nil {
		return nil
	}
	var failed []error
	if w.proxy != nil {
		w.proxy.Close()
	}
	if w.pod != nil {
		failed = append(failed, w.pod.end())
	}
	if w.nodes != nil {
		w.nodes.Close()
	}
	switch {
	case w.lab != nil:
		failed = append(failed, w.lab.Close(ctx))
	case w.cluster != nil:
		failed = append(failed, w.cluster.Down(ctx))
	}
	return errors.Join(failed...)
}

// until waits until check returns nil. Until then, its errors are printed as progress, and in the failure.
func until(ctx context.Context, limit time.Duration, what string, check func(context.Context) error) {
	GinkgoHelper()
	if err := waitFor(ctx, limit, check); err != nil {
		Fail(fmt.Sprintf("waiting until %s: not within %s: %v", what, limit, err))
	}
}

func waitFor(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	const pause = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	logged, loggedAt := "", time.Now()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		if text := firstLine(err.Error()); text != logged && time.Since(loggedAt) > pause {
			logged, loggedAt = text, time.Now()
			say("    %s", text)
		}
		select {
		case <-ctx.Done():
			return errors.Join(last, context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// kubectl runs kubectl as the administrator and fails the test on errors.
func (w *world) kubectl(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	out, err := w.lab.Kubectl(ctx, arguments...)
	if err != nil {
		Fail(err.Error())
	}
	return out
}

// dump prints the state of everything after a failure.
func (w *world) dump(ctx context.Context) {
	for _, arguments := range [][]string{
		{"get", "machinesets,machines", "-o", "wide"},
		{
			"get", "machines",
			"-o",
			`jsonpath={range .items[*]}{.metadata.name}: {.status.errorMessage}{range .status.conditions[*]} {.type}={.status} {.reason} {.message};{end}{"\n"}{end}`,
		},
		{"get", "nodes", "-L", "machine-iac.io/machine-uid"},
		{"get", "secrets", "-l", "machine-iac.io/state",
			"-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.annotations}{"\n"}{end}`},
		{"get", "events", "--sort-by=.metadata.creationTimestamp"},
		{"get", "leases"},
		{"get", "machineapioperators", "-o", "jsonpath={.items[*].status.conditions}"},
	} {
		out, err := w.lab.Kubectl(ctx, arguments...)
		if err != nil {
			out += err.Error() + "\n"
		}
		fmt.Printf("\n$ kubectl %s\n%s", strings.Join(arguments, " "), lastLines(out, 60))
	}
	engines, err := w.engines()
	fmt.Printf("\nengines: %v (%v)\nholds on the proxy: %v\n", engines, err, w.proxy.Waiting())
	log, err := os.ReadFile(w.pod.log())
	fmt.Printf("\nthe end of %s (%v):\n%s\n", w.pod.log(), err, lastLines(string(log), 60))
}

func lastLines(text string, count int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-count-1):], "")
}
