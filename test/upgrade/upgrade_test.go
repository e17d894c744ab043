//go:build upgrade

package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const (
	root = "../.."
	// fromVariable is the environment variable with the commit of the previous release.
	fromVariable = "UPGRADE_FROM"
	// The versions of the two releases, which may differ from the built-in ones.
	before, after = "0.9.0", "1.0.0"

	running, coming = 100, 5
	// slow is how long the infrastructure takes to create each of the pending instances.
	slow = 20 * time.Second
	// patience bounds what takes up to a minute on an idle machine.
	patience = 15 * time.Minute
	// stopTimeout is the grace period that a kubelet gives the manager.
	stopTimeout = 4 * time.Minute
)

// No kubelet restarts a manager that loses its lease on a busy machine, so the lease is long. A stopped manager
// releases it.
var flags = []string{
	"--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=90s", "--leader-elect-retry-period=3s",
	"--max-concurrent-runs=8", "--cluster-id=demo",
}

func TestMachinesAreLeftAloneByAnUpgrade(t *testing.T) {
	w := open(t)
	// Unlike Pods, processes share the webhooks' port: the new manager serves them.
	old, err := w.lab.StartInstance(t.Context(), lab.Instance{Name: "before"},
		append([]string{"--webhook-enabled=false"}, flags...)...)
	w.must(err)
	w.leads = old
	t.Cleanup(func() { w.check(old.Stop(stopTimeout)) })
	w.create("fleet", running, "kubemark-credentials")
	w.until(fmt.Sprintf("%d Machines are Running", running),
		func(ctx context.Context) error { return w.settled(ctx, running) })
	w.until("the release before is rolled out", w.reports(before))

	slowly := w.proxy.Inject(apiproxy.Fault{
		At: apiproxy.BeforeRequest, Match: apiproxy.NodesMade, Delay: slow, Slow: true,
	})
	defer slowly.Lift()
	w.create("late", coming, w.slowCredentials())
	w.until("all of the others are being made", func(ctx context.Context) error { return w.begun(ctx, coming) })
	settledBefore := w.traces()
	if len(settledBefore) != running {
		t.Fatalf("%d Machines are settled, not %d", len(settledBefore), running)
	}

	current := w.upgrade(old)
	w.until(fmt.Sprintf("%d Machines are Running", running+coming),
		func(ctx context.Context) error { return w.settled(ctx, running+coming) })
	w.until("the new release is rolled out", w.reports(after))

	now := w.traces()
	for name, trace := range settledBefore {
		if diff := cmp.Diff(trace, now[name]); diff != "" {
			t.Errorf("Machine %s was touched (-before +after):\n%s", name, diff)
		}
	}
	for machine, uids := range w.nodes.ByMachine() {
		if len(uids) != 1 {
			t.Errorf("Machine %s has had %d instances", machine, len(uids))
		}
	}
	w.startedFor(current, coming)
}

// world is a development cluster with a release of the operator.
type world struct {
	*testing.T
	lab    *lab.Lab
	client client.Client
	nodes  *observe.NodeLog
	proxy  *apiproxy.Proxy
	// leads is the manager that must run.
	leads *lab.Manager
}

func open(t *testing.T) *world {
	t.Helper()
	log.SetLogger(logr.Discard()) // clients warn of injected faults
	w := &world{T: t}
	dir, err := os.MkdirTemp("", "machine-iac-upgrade-")
	w.must(err)
	opened, err := lab.Open(t.Context(), lab.Options{
		Root: w.releaseBefore(), Dir: dir, Progress: os.Stdout, Operator: true,
		Release: lab.OperatorInstance{Version: before},
	})
	w.must(err)
	w.lab = opened
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's context has ended
		defer cancel()
		w.check(w.lab.Close(ctx))
		if t.Failed() {
			t.Logf("the cluster's data and all logs are kept in %s", dir)
			return
		}
		w.check(w.lab.Cluster.Purge(ctx))
	})
	config, err := opened.Cluster.AdminConfig()
	w.must(err)
	config.QPS = -1
	scheme, err := controlplane.Scheme()
	w.must(err)
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	clients, err := kubernetes.NewForConfig(config)
	w.must(err)
	w.nodes, err = observe.WatchNodes(t.Context(), clients)
	w.must(err)
	t.Cleanup(w.nodes.Close)
	authority, err := opened.Cluster.CAData()
	w.must(err)
	w.proxy, err = apiproxy.Open(opened.Cluster.Server(), authority)
	w.must(err)
	t.Cleanup(w.proxy.Close)
	return w
}

// releaseBefore returns the repository of the previous release, with its programs built.
func (w *world) releaseBefore() string {
	w.Helper()
	commit := os.Getenv(fromVariable)
	if commit == "" {
		return root
	}
	here, err := filepath.Abs(root)
	w.must(err)
	there := filepath.Join(w.TempDir(), "before")
	w.run(here, "git", "worktree", "add", "--detach", there, commit)
	w.Cleanup(func() { w.run(here, "git", "worktree", "remove", "--force", there) })
	w.must(os.MkdirAll(filepath.Join(there, "bin"), 0o755))
	tools, err := os.ReadDir(filepath.Join(here, "bin"))
	w.must(err)
	for _, tool := range tools {
		switch tool.Name() {
		case "machine-controllers", "machine-api-operator":
		default:
			w.must(os.Symlink(filepath.Join(here, "bin", tool.Name()), filepath.Join(there, "bin", tool.Name())))
		}
	}
	w.run(there, "go", "build", "-trimpath", "-ldflags", "-X main.version="+before, "-o", "bin/",
		"./cmd/machine-controllers", "./cmd/machine-api-operator")
	return there
}

func (w *world) run(dir, program string, arguments ...string) {
	w.Helper()
	command := exec.Command(program, arguments...) // also after the test's context has ended
	command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		w.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// upgrade upgrades to the new release as an administrator does, and simulates the kubelet during the rollout: the new
// Pod starts before the old one ends.
func (w *world) upgrade(old *lab.Manager) *lab.Manager {
	w.Helper()
	w.must(w.lab.Operator.Stop())
	here, err := filepath.Abs(root)
	w.must(err)
	w.must(w.lab.ApplyTree(w.Context(), filepath.Join(here, "install", "kubernetes")))
	w.lab.Operator, err = w.lab.RunOperator(w.Context(),
		lab.OperatorInstance{Binary: filepath.Join(here, "bin", "machine-api-operator"), Version: after})
	w.must(err)
	w.until("the controllers are applied by the new release", func(ctx context.Context) error {
		version, err := w.lab.Kubectl(ctx, "get", "deployment/machine-api-controllers",
			"-o", `jsonpath={.metadata.annotations.machine-iac\.io/version}`)
		if version != after {
			return errors.Join(err, fmt.Errorf("it is of version %q", version))
		}
		return err
	})
	current, err := w.lab.StartInstance(w.Context(),
		lab.Instance{Name: "after", Binary: filepath.Join(here, "bin", "machine-controllers")}, flags...)
	w.must(err)
	w.Cleanup(func() { w.check(current.Stop(stopTimeout)) })
	w.must(w.begun(w.Context(), 1)) // otherwise the test would prove nothing
	w.leads = current
	w.must(old.Stop(stopTimeout))
	return current
}

// startedFor checks that a manager has run engines for at most so many Machines, and that it has the new release's
// version.
func (w *world) startedFor(current *lab.Manager, machines int) {
	w.Helper()
	token, err := w.lab.MetricsToken(w.Context())
	w.must(err)
	status, text, err := current.Scrape(w.Context(), token)
	w.must(err)
	if status != http.StatusOK {
		w.Fatalf("the metrics are not shown: %d %s", status, text)
	}
	// Each run is a few commands of the engine.
	const commands = 8
	if started := lab.Sum(text, "machine_iac_engine_starts_total"); started > float64(machines*commands) {
		w.Errorf("the engine was started %v times for %d Machines", started, machines)
	}
}

// reports returns a check that a version is rolled out.
func (w *world) reports(version string) func(context.Context) error {
	return func(ctx context.Context) error {
		status, err := w.lab.Kubectl(ctx, "get", "machineapioperators/machine-api", "-o",
			`jsonpath={.status.versions[?(@.name=="operator")].version}{range .status.conditions[*]} {.type}={.status}{end}`)
		if err != nil {
			return err
		}
		for _, want := range []string{version + " ", "Available=True", "Progressing=False", "Degraded=False"} {
			if !strings.Contains(status, want) {
				return fmt.Errorf("the status is %s", status)
			}
		}
		return nil
	}
}

func phaseOf(machine *machinev1beta1.Machine) string {
	if machine.Status.Phase == nil {
		return ""
	}
	return *machine.Status.Phase
}
