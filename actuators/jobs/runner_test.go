package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/jobs"
	"github.com/machine-iac/machine-iac-operator/actuators/remote"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/actuators/terraform"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// plane is shared by the tests of this package: an API server takes seconds to start.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	var err error
	if plane, err = controlplane.Start(controlplane.Default); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	code := m.Run()
	if err := plane.Stop(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
	}
	os.Exit(code)
}

// bench is a namespace with what runs of the module kubemark need.
type bench struct {
	*testing.T
	namespace string
	store     *state.Store
	module    *module.Module
	token     string
	// node carries Jobs out, nil without.
	node *node
}

func newBench(t *testing.T) *bench {
	t.Helper()
	namespace, err := plane.Namespace(t.Context())
	must(t, err)
	loaded, err := load.Modules(modules.FS)
	must(t, err)
	at := slices.IndexFunc(loaded, func(m *module.Module) bool { return m.Name() == "kubemark" })
	b := &bench{T: t, namespace: namespace, store: state.New(plane.Client, state.Options{}), module: loaded[at]}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kubemark"}}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "create", "patch", "delete"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	must(t, plane.Create(t.Context(), account, role, binding))
	token := &authenticationv1.TokenRequest{}
	must(t, plane.Client.SubResource("token").Create(t.Context(), account, token))
	b.token = token.Status.Token
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newEngine returns OpenTofu with the providers of the mirror.
func newEngine(ctx context.Context, workDir string) (*tofu.Engine, error) {
	binary, err := tofu.Find(ctx, tofu.FindOptions{Path: filepath.Join("..", "..", "bin", "tofu")})
	if err != nil {
		return nil, fmt.Errorf("%w; run 'make tools'", err)
	}
	return tofu.New(tofu.Options{Binary: binary, WorkDir: workDir, ProviderMirror: filepath.Join("..", "..", "bin", "mirror"), Slots: 1, WaitDelay: 10 * time.Second})
}

// inProcess returns a runner whose engines run in this process's work folder.
func (b *bench) inProcess() runner.Runner {
	b.Helper()
	engine, err := newEngine(b.Context(), shortdir.New(b))
	must(b.T, err)
	return b.started(terraform.New(engine, backend.New(backend.Options{})))
}

// inJobs returns a runner whose engines run where Jobs do, and the node that carries these out.
func (b *bench) inJobs(change ...func(*jobs.Options)) *jobs.Runner {
	b.Helper()
	server, err := remote.NewServer(remote.ServerOptions{Listen: "127.0.0.1:0", Advertise: "127.0.0.1", Active: func() bool { return true }})
	must(b.T, err)
	options := jobs.Options{
		Client: plane.Client, Namespace: b.namespace, Server: server, Backend: backend.New(backend.Options{}), Manager: "manager-1", Dir: b.TempDir(),
		Template: jobs.Template{Image: "image", Command: []string{"machine-controllers", "run"}, ServiceAccount: "default", DeadlineSeconds: 60, GraceSeconds: 10, TTLSeconds: 60},
		Settings: func() ([]byte, error) { return nil, nil }, InterruptGrace: 10 * time.Second, Life: 3 * time.Second, Grace: time.Second,
	}
	for _, one := range change {
		one(&options)
	}
	made, err := jobs.New(options)
	must(b.T, err)
	if b.node == nil {
		b.node = startNode(b)
	}
	b.started(made)
	return made
}

func (b *bench) started(with runner.Runner) runner.Runner {
	b.Helper()
	must(b.T, with.Start(b.Context()))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own has ended
		defer cancel()
		if err := with.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	return with
}

// node carries Jobs out in this process.
type node struct {
	bench *bench
	mu    sync.Mutex
	seen  map[types.UID]context.CancelFunc
	// fails has the process of a Job not come to be.
	fails bool
}

func startNode(b *bench) *node {
	n := &node{bench: b, seen: map[types.UID]context.CancelFunc{}}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			n.pass(ctx, &working)
			time.Sleep(50 * time.Millisecond)
		}
	})
	b.Cleanup(func() {
		cancel()
		working.Wait()
	})
	return n
}

// pass starts the process of each new Job, and stops that of each that is gone.
func (n *node) pass(ctx context.Context, working *sync.WaitGroup) {
	var found batchv1.JobList
	if err := plane.Client.List(ctx, &found, client.InNamespace(n.bench.namespace)); err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, stop := range n.seen {
		if !slices.ContainsFunc(found.Items, func(job batchv1.Job) bool { return job.UID == uid }) {
			stop()
		}
	}
	for _, job := range found.Items {
		if n.seen[job.UID] != nil || n.fails || job.Spec.Suspend != nil && *job.Spec.Suspend {
			continue
		}
		own, stop := context.WithCancel(ctx)
		n.seen[job.UID] = stop
		working.Go(func() {
			if err := n.work(own, job.Name); err != nil && own.Err() == nil {
				n.bench.Errorf("the process of Job %s: %v", job.Name, err)
			}
		})
	}
}

func (n *node) work(ctx context.Context, name string) error {
	var secret corev1.Secret
	for {
		err := plane.Client.Get(ctx, client.ObjectKey{Namespace: n.bench.namespace, Name: name}, &secret)
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	dir, err := os.MkdirTemp("", "pod-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for file, content := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			return err
		}
	}
	ticket, err := remote.ReadTicket(dir)
	if err != nil {
		return err
	}
	return remote.Work(ctx, remote.WorkOptions{Ticket: ticket, Patience: 20 * time.Second, Make: func(ctx context.Context, given remote.Given) (runner.Runner, error) {
		engine, err := newEngine(ctx, filepath.Join(dir, "work"))
		if err != nil {
			return nil, err
		}
		return terraform.New(engine, given.States), nil
	}})
}

// lock takes the lock of a Machine's state.
func (b *bench) lock(uid types.UID) *state.Session {
	b.Helper()
	session, err := b.store.Acquire(b.Context(), state.KeyFor(b.namespace, uid), state.AcquireOptions{
		Lock: state.Lock{Owner: "manager-1", Run: string(uid) + "-run", Operation: "create", Epoch: state.Epoch{Lease: "lease", Transitions: 1, Holder: "manager-1"}},
	})
	must(b.T, err)
	return session
}

// run describes a run for a Machine.
func (b *bench) run(uid types.UID, session *state.Session, change func(spec map[string]any)) runner.RunSpec {
	b.Helper()
	spec := map[string]any{"credentialsSecret": map[string]any{"name": "kubemark-credentials"}}
	if change != nil {
		change(spec)
	}
	variables, err := json.Marshal(map[string]any{
		"machine":       map[string]any{"name": string(uid), "namespace": b.namespace, "uid": string(uid), "cluster_id": "demo", "labels": map[string]any{}},
		"provider_spec": spec, "user_data": "",
	})
	must(b.T, err)
	return runner.RunSpec{
		ID: string(uid) + "-run", Identity: map[string]string{"uid": string(uid)}, Module: b.module, Session: session, Lineage: string(uid), Variables: variables,
		Environment: map[string]string{
			"KUBE_HOST": plane.Config.Host, "KUBE_TOKEN": b.token, "KUBE_CLUSTER_CA_CERT_DATA": string(plane.Config.CAData),
			"KUBE_LOAD_CONFIG_FILE": "false", "KUBECTL_PROVIDER_APPLY_RETRY_COUNT": "0",
		},
		Sensitive: []string{b.token},
	}
}

// in opens a run, uses it, and closes it.
func (b *bench) in(with runner.Runner, run runner.RunSpec, use func(runner.Workspace)) {
	b.Helper()
	opened, err := with.Open(b.Context(), run)
	must(b.T, err)
	defer func() {
		if err := errors.Join(opened.Close(), opened.Close()); err != nil {
			b.Error(err)
		}
	}()
	use(opened)
}

// What an engine does for a Machine is the same wherever it runs.
func TestARunIsTheSameInAJobAsInTheProcess(t *testing.T) {
	long.Test(t)
	for name, start := range map[string]func(*bench) runner.Runner{
		"process": (*bench).inProcess,
		"jobs":    func(b *bench) runner.Runner { return b.inJobs() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			conforms(b, start(b), types.UID("machine-"+name))
		})
	}
}

func conforms(b *bench, with runner.Runner, uid types.UID) {
	b.Helper()
	session := b.lock(uid)
	var mu sync.Mutex
	var events []engine.Event
	var printed []string
	first := b.run(uid, session, nil)
	first.Progress = func(event engine.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, event)
	}
	first.Output = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		printed = append(printed, text)
	}
	b.in(with, first, func(w runner.Workspace) {
		report, err := w.Apply(b.Context())
		if err != nil || len(report.Applied) != 2 || report.Done.Add != 2 || string(report.Outputs["instance_state"].Value) == "" {
			b.Errorf("a create reports %+v, %v", report, err)
		}
		if w.Unsaved() {
			b.Error("a state is unsaved")
		}
	})
	if !slices.ContainsFunc(events, func(e engine.Event) bool {
		return e.Kind == engine.EventCompleted && e.Action == engine.ActionCreate && e.Instance()
	}) {
		b.Errorf("the events of a create are %+v", events)
	}
	if text := strings.Join(printed, "\n"); !strings.Contains(text, "Creation complete") || strings.Contains(text, b.token) {
		b.Errorf("a create prints %s", text)
	}
	must(b.T, plane.Client.Get(b.Context(), client.ObjectKey{Name: string(uid)}, &corev1.Node{}))
	if stored, err := session.Snapshot(b.Context()); err != nil || !strings.Contains(string(stored.Raw), "kubectl_manifest") {
		b.Errorf("the state is %.100s, %v", stored.Raw, err)
	}
	b.in(with, b.run(uid, session, nil), func(w runner.Workspace) {
		if report, err := w.Plan(b.Context()); err != nil || !report.NoChange() {
			b.Errorf("a plan without changes is %+v, %v", report, err)
		}
	})
	changed := b.run(uid, session, func(spec map[string]any) { spec["labels"] = map[string]any{"example.com/a": "b"} })
	b.in(with, changed, func(w runner.Workspace) {
		report, err := w.Plan(b.Context())
		if err != nil || !report.InPlaceOnly() || report.Planned.Change != 1 {
			b.Errorf("a plan in place is %+v, %v", report, err)
		}
		if planned, err := w.Planned(b.Context()); err != nil || len(planned.Changed) != 1 {
			b.Errorf("a plan has %+v, %v", planned, err)
		}
		if report, err := w.ApplyPlan(b.Context()); err != nil || len(report.Applied) != 1 {
			b.Errorf("a change in place reports %+v, %v", report, err)
		}
	})
	b.in(with, b.run(uid, session, func(spec map[string]any) { spec["cpu"] = -1 }), func(w runner.Workspace) {
		_, err := w.Plan(b.Context())
		failed, ok := errors.AsType[*failure.Error](err)
		if !ok || failed.Class != failure.InvalidConfiguration || failed.Op != failure.OpPlan || !strings.Contains(err.Error(), "cpu is the number of processors") {
			b.Errorf("a plan of what is wrong fails with %+v", err)
		}
		ctx, cancel := context.WithCancelCause(b.Context())
		why := errors.New("the manager stops")
		cancel(why)
		if _, err := w.Plan(ctx); failure.ClassOf(err) != failure.Interrupted || !errors.Is(err, why) {
			b.Errorf("a plan that is interrupted fails with %v", err)
		}
	})
	lookup := b.run("no-"+uid, b.lock("no-"+uid), nil)
	lookup.Search = engine.SearchLookup
	b.in(with, lookup, func(w runner.Workspace) {
		if _, err := w.Plan(b.Context()); !runner.IsNotFound(err, b.module, engine.SearchLookup) {
			b.Errorf("a lookup of nothing fails with %v", err)
		}
	})
	b.in(with, changed, func(w runner.Workspace) {
		if report, err := w.Destroy(b.Context()); err != nil || report.Done.Remove != 2 {
			b.Errorf("a destroy reports %+v, %v", report, err)
		}
	})
	if err := plane.Client.Get(b.Context(), client.ObjectKey{Name: string(uid)}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		b.Errorf("the Node is still there: %v", err)
	}
	if left, err := with.AbandonedRuns(); err != nil || len(left) > 0 {
		b.Errorf("abandoned runs %v, %v", left, err)
	}
}
