package iac

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/conformance"
	"github.com/machine-iac/machine-iac-operator/actuators/orphans"
	pulumirunner "github.com/machine-iac/machine-iac-operator/actuators/pulumi"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/actuators/terraform"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// bench is a real API server, a real engine with a real provider, and the actuator between them.
type bench struct {
	*Actuator
	t         *testing.T
	client    client.Client
	namespace string
	clock     *clocktesting.FakePassiveClock
	// environment is set for every engine.
	environment map[string]string
	// around is what runs see of the cluster; nothing when nil.
	around desired.EnvironmentReader
	// keys are what checkpoints are encrypted with: those that tests share when nil.
	keys *pulumikeys.Keys
	// uses is the engine that the bench's Machines are made with, OpenTofu when empty; lacks is one
	// that is not there.
	uses, lacks v1alpha1.Engine
	// loaded are the modules; those of this repository when nil.
	loaded []*module.Module
	// updates says what becomes of Machines whose module changes.
	updates desired.ModuleUpdates
	// moduleKeys sign the modules that are stored; nothing does when nil.
	moduleKeys *store.Keys
	// stateKeys encrypt the states; nothing does when nil.
	stateKeys *state.Keys
	// policy says which Secrets Machines may use; all of them when nil.
	policy *references.Policy
	// adopts says which instances are adopted; those for which a user asks when empty.
	adopts adoption.Policy
	// installation is the operator's own; one that is not stored unless a test sets it.
	installation *installation.Installation
	// cluster is what modules may know of the cluster; the installation alone when nil.
	cluster *module.Cluster
	// authorities is the folder with the authorities of around, unconfined says that engines are
	// not kept from anything.
	authorities string
	unconfined  bool
	// wrapped is a program that is run in place of OpenTofu; none when empty.
	wrapped string
	// readable are files that engines may read, as --sandbox-read names them.
	readable []string
	// queue is what runs of OpenTofu wait in; none when nil.
	queue *queue
	// mirror is the mirror of OpenTofu's providers; the one of the tools when empty.
	mirror string
	// batch is how many drift checks may be made together; each is made alone when zero.
	batch int
	// warm is how many providers of OpenTofu are kept running; none when zero.
	warm int
	// grace is how long runs may go on when the actuator is stopped; none when zero.
	grace time.Duration
	// leads is what the actuator knows of leadership.
	leads leads
	// stop ends the actuator that start has started last, as the end of its manager does.
	stop func()
}

// leads is a leader that takes nobody for dead but those that are proven to be.
type leads struct {
	proven atomic.Pointer[string]
	lost   atomic.Bool
	began  atomic.Pointer[time.Time]
}

func (l *leads) Began() time.Time { return ptr.Deref(l.began.Load(), time.Time{}) }

func (l *leads) Epoch() state.Epoch {
	return state.Epoch{Lease: "lease", Transitions: 1, Holder: "owner"}
}

func (l *leads) Confirm(context.Context) error {
	if l.lost.Load() {
		return leadership.ErrNotLeader
	}
	return nil
}

func (l *leads) DeadIn(_ context.Context, held state.Epoch) (time.Duration, error) {
	if proven := l.proven.Load(); proven != nil && *proven == held.Holder {
		return 0, nil
	}
	return time.Second, nil
}

// plane is shared by the tests of this package: starting an API server is dear.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	err := flag.Set("test.parallel", "4") // engines and simulated clouds are waited for most of the time
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
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

// What every bench has is looked for once.
var (
	foundTofu = sync.OnceValues(func() (tofu.Binary, error) {
		path := cmp.Or(os.Getenv("TOFU"), filepath.Join("..", "..", "bin", "tofu"))
		return tofu.Find(context.Background(), tofu.FindOptions{Path: path})
	})
	foundPulumi = sync.OnceValues(func() (pulumi.Binary, error) {
		return pulumi.Find(context.Background(), filepath.Join("..", "..", "bin", "pulumi"))
	})
	// sharedKeys are those of tests that do not replace them: deriving one takes a good part of a
	// second.
	sharedKeys = sync.OnceValues(func() (*pulumikeys.Keys, error) {
		namespace, err := plane.Namespace(context.Background())
		if err != nil {
			return nil, err
		}
		return pulumikeys.New(plane.Client, pulumikeys.Options{Namespace: namespace})
	})
)

func repository(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchAround(t, nil)
}

func newBenchAround(t *testing.T, around desired.EnvironmentReader) *bench {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestTheActuatorConforms/") { // one round trip of each engine is for every run
		long.Test(t)
	}
	parallel(t)
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		t: t, client: plane.Client, namespace: namespace, clock: clocktesting.NewFakePassiveClock(time.Now()), around: around, uses: v1alpha1.EngineTerraform,
		installation: installation.Generate(),
	}
	b.credentials()
	b.start(shortdir.New(t), "owner-1")
	return b
}

// paralleled are the tests that run beside others.
var paralleled sync.Map

// parallel has a test run beside others: most of it is waiting for engines.
func parallel(t *testing.T) {
	if _, known := paralleled.LoadOrStore(t, true); !known {
		t.Parallel()
	}
}

// confined is what confines engines, as the manager has them confined.
func (b *bench) confined() *sandbox.Sandbox {
	b.t.Helper()
	if b.unconfined {
		return nil
	}
	confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred, Read: slices.Concat(b.readable, sandbox.Named(b.environment))})
	if err != nil {
		b.t.Fatal(err)
	}
	return confined.Reading(b.authorities)
}

// start makes the actuator and runs it; the test's end stops it.
func (b *bench) start(workDir, owner string) {
	b.t.Helper()
	if b.installation == nil {
		b.installation = installation.Generate()
	}
	binary, err := foundTofu()
	if err != nil {
		b.t.Fatalf("%v; run 'make tools'", err)
	}
	if b.wrapped != "" {
		binary.Path = b.wrapped
	}
	engine, err := tofu.New(tofu.Options{
		Binary: binary, WorkDir: workDir, ProviderMirror: cmp.Or(b.mirror, repository(b.t, "bin", "mirror")), Slots: 4, WaitDelay: 10 * time.Second,
		Environment: b.environment, Sandbox: b.confined(), Warm: provider.Options{Max: b.warm},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	loaded := b.loaded
	if loaded == nil {
		for _, built := range []fs.FS{modules.FS, stacks.FS} {
			more, err := load.Modules(built)
			if err != nil {
				b.t.Fatal(err)
			}
			loaded = append(loaded, more...)
		}
	}
	if b.keys == nil {
		if b.keys, err = sharedKeys(); err != nil {
			b.t.Fatal(err)
		}
	}
	catalog, err := module.NewCatalog(loaded...)
	if err != nil {
		b.t.Fatal(err)
	}
	pool := runs.New(runs.Options{MaxConcurrent: 4, MaxBatch: b.batch, MaxBatchDrift: b.batch, RetryBase: 100 * time.Millisecond, RetryMax: 500 * time.Millisecond, StopGrace: b.grace})
	runners := map[v1alpha1.Engine]runner.Runner{
		v1alpha1.EngineTerraform: terraform.New(engine, backend.New(backend.Options{})),
		v1alpha1.EnginePulumi:    pulumirunner.New(b.pulumi(), b.keys),
	}
	if b.queue != nil {
		runners[v1alpha1.EngineTerraform] = queued{runners[v1alpha1.EngineTerraform], b.queue}
	}
	delete(runners, b.lacks)
	b.Actuator, err = New(Options{
		Client: b.client, Recorder: events.NewFakeRecorder(1000), Catalog: catalog, Store: state.New(b.client, state.Options{Namespace: b.namespace, Clock: passing{now: b.clock}, Keys: b.stateKeys}),
		Modules: store.New(b.client, store.Options{Clock: b.clock, Keys: b.moduleKeys, Known: catalog.Has}),
		Pool:    pool, Runners: runners, Owner: owner, Leader: &b.leads, Installation: b.installation,
		Bootstrap:     bootstrap.New(bootstrap.Options{Client: b.client, Installation: b.installation, Groups: []string{"system:bootstrappers:test"}, Lifetime: time.Hour, Clock: b.clock}),
		DriftInterval: time.Hour, Clock: b.clock, ModuleUpdates: b.updates, Environment: b.around, Cluster: b.known(),
		References: b.policy, Adoption: adoption.Rules{Policy: cmp.Or(b.adopts, adoption.OnRequest)},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	started := b.Actuator
	go func() { ended <- started.Start(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("stopping the actuator: %v", err)
		}
	})
	b.t.Cleanup(b.stop)
}

// orphans returns the pass over the states.
func (b *bench) orphans() *orphans.Orphans {
	return orphans.New(orphans.Options{
		Namespace: b.namespace, Client: b.client, Actuator: b.Actuator, Store: b.store, Catalog: b.catalog, Modules: b.modules, Clock: b.clock, Recorder: b.recorder,
		Installation: b.installation,
	})
}

// starts returns how often the engine was started.
func (b *bench) starts() int64 { return b.runners[cmp.Or(b.uses, v1alpha1.EngineTerraform)].Starts() }

// credentials makes what the kubemark module signs in with.
func (b *bench) credentials() {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "kubemark"}}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "create", "patch", "delete"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: account.Name}},
	}
	if err := plane.Create(b.t.Context(), account, role, binding); err != nil {
		b.t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{}
	if err := b.client.SubResource("token").Create(b.t.Context(), account, token); err != nil {
		b.t.Fatal(err)
	}
	err := plane.Create(b.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "kubemark-credentials"},
		Data: map[string][]byte{
			"server": []byte(plane.Config.Host), "token": []byte(token.Status.Token), "ca.crt": plane.Config.CAData,
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) machine(mods ...func(map[string]any)) *machinev1beta1.Machine {
	spec := map[string]any{
		"apiVersion": "kubemarkproviderconfig.openshift.io/v1alpha1", "kind": "KubemarkMachineProviderConfig",
		"cpu": 4, "instanceType": "hollow", "region": "region-a", "zone": "zone-a",
		"credentialsSecret": map[string]any{"name": "kubemark-credentials"},
	}
	for _, mod := range mods {
		mod(spec)
	}
	if b.uses == v1alpha1.EnginePulumi {
		spec = onPulumi(spec)
	}
	machine := builder.In(b.namespace, builder.Machine())
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	return b.apply(machine)
}

// apply makes a Machine at the API server.
func (b *bench) apply(machine *machinev1beta1.Machine) *machinev1beta1.Machine {
	b.t.Helper()
	machine.Finalizers = []string{machinev1beta1.MachineFinalizer}
	if err := plane.Create(b.t.Context(), machine); err != nil {
		b.t.Fatal(err)
	}
	return machine
}

// sync brings the API server's Machine to one in memory, but for what runs have written.
func (b *bench) sync(ctx context.Context, machine *machinev1beta1.Machine) error {
	return plane.Sync(ctx, machine, record.WitnessAnnotation)
}

// Exists, Create, Update and Delete call the actuator about a Machine that the API server has as
// well.
func (b *bench) Exists(ctx context.Context, machine *machinev1beta1.Machine) (bool, error) {
	if err := b.sync(ctx, machine); err != nil {
		return false, err
	}
	return b.Actuator.Exists(ctx, machine)
}

func (b *bench) Create(ctx context.Context, machine *machinev1beta1.Machine) error {
	if err := b.sync(ctx, machine); err != nil {
		return err
	}
	return b.passing(b.Actuator.Create(ctx, machine))
}

func (b *bench) Update(ctx context.Context, machine *machinev1beta1.Machine) error {
	if err := b.sync(ctx, machine); err != nil {
		return err
	}
	return b.passing(b.Actuator.Update(ctx, machine))
}

func (b *bench) Delete(ctx context.Context, machine *machinev1beta1.Machine) error {
	if err := b.sync(ctx, machine); err != nil {
		return err
	}
	live := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.Name}}
	if err := plane.Client.Delete(ctx, live, client.Preconditions{UID: &machine.UID}); client.IgnoreNotFound(err) != nil {
		return err
	}
	return b.passing(b.Actuator.Delete(ctx, machine))
}

// passing lets the time pass that a verb waits with until what was not found counts.
func (b *bench) passing(err error) error {
	if waiting, busy := actuators.AsRequeueAfter(err); busy && strings.Contains(waiting.Reason, "next lookup at") {
		b.later(waiting.After)
	}
	return err
}

func set(machine *machinev1beta1.Machine, b *bench, name string, value any) {
	machine.Spec.ProviderSpec.Value = b.machine(func(spec map[string]any) { spec[name] = value }).Spec.ProviderSpec.Value
}

// node returns the instance of a Machine, nil when there is none.
func (b *bench) node(machine *machinev1beta1.Machine) *corev1.Node {
	b.t.Helper()
	node := &corev1.Node{}
	err := b.client.Get(b.t.Context(), types.NamespacedName{Name: machine.Name}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return node
}

// pause is how long a verb is not called again while a run is in progress: each call reads and
// writes a lot at the API server.
const pause = 250 * time.Millisecond

// patience is how long a test waits for what has to happen; on a busy machine an engine takes many times what it takes alone.
const patience = 4 * time.Minute

// drive calls a verb until it is done, and returns its last error.
func (b *bench) drive(verb func(context.Context, *machinev1beta1.Machine) error, machine *machinev1beta1.Machine) error {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := verb(b.t.Context(), machine)
		if _, busy := actuators.AsRequeueAfter(err); !busy {
			return err
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("still in progress after %s: %v", patience, err)
		}
		time.Sleep(pause)
	}
}

func (b *bench) bring(machine *machinev1beta1.Machine) {
	b.t.Helper()
	if err := b.drive(b.Create, machine); err != nil {
		b.t.Fatalf("Create: %v", err)
	}
	if err := b.drive(b.Update, machine); err != nil {
		b.t.Fatalf("Update: %v", err)
	}
}

func TestTheActuatorConforms(t *testing.T) {
	eachEngine(t, theActuatorConforms)
}

func theActuatorConforms(t *testing.T, b *bench) {
	wrong, field := b.machine(func(spec map[string]any) { spec["cpu"] = "four" }).Spec.ProviderSpec.Value, "spec.providerSpec.value.cpu"
	if b.uses == v1alpha1.EnginePulumi {
		field = "spec.providerSpec.value.values.cpu"
	}
	conformance.Run(t, conformance.Harness{
		Actuator:   b,
		NewMachine: func(*testing.T) *machinev1beta1.Machine { return b.machine() },
		Instances: func(_ *testing.T, machine *machinev1beta1.Machine) int {
			if b.node(machine) == nil {
				return 0
			}
			return 1
		},
		Vanish: func(t *testing.T, machine *machinev1beta1.Machine) {
			if err := b.client.Delete(t.Context(), b.node(machine)); err != nil {
				t.Fatal(err)
			}
			b.clock.SetTime(b.clock.Now().Add(2 * time.Hour))
		},
		Lose:      b.misplace,
		WrongType: wrong,
		Field:     field,
		Patience:  2 * time.Minute,
	})
	states, err := b.store.List(t.Context(), b.namespace)
	if err != nil {
		t.Fatal(err)
	}
	if len(states) > 0 {
		t.Errorf("%d states are left: %+v", len(states), states)
	}
}

func TestAnUpdateInPlaceKeepsTheInstance(t *testing.T) {
	eachEngine(t, anUpdateInPlaceKeepsTheInstance)
}

func anUpdateInPlaceKeepsTheInstance(t *testing.T, b *bench) {
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	after := b.node(machine)
	if after.UID != before.UID {
		t.Error("the instance was replaced")
	}
	if after.Labels[corev1.LabelTopologyZone] != "zone-b" || machine.Labels[labelZone] != "zone-b" {
		t.Errorf("zone of the Node %q, of the Machine %q; want zone-b", after.Labels[corev1.LabelTopologyZone], machine.Labels[labelZone])
	}
}

func TestAReplacementIsRefusedOnceAndTakingItBackSettles(t *testing.T) {
	eachEngine(t, aReplacementIsRefusedOnceAndTakingItBackSettles)
}

func aReplacementIsRefusedOnceAndTakingItBackSettles(t *testing.T, b *bench) {
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	set(machine, b, "cpu", 8)
	err := b.drive(b.Update, machine)
	if !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Fatalf("Update: %v, want UnsupportedChange", err)
	}
	starts := b.starts()
	b.clock.SetTime(b.clock.Now().Add(10 * time.Minute))
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Errorf("a second Update: %v, want UnsupportedChange", err)
	}
	if again := b.starts(); again != starts {
		t.Errorf("the refused change was planned again: %d more starts", again-starts)
	}
	set(machine, b, "cpu", 4)
	if err := b.drive(b.Update, machine); err != nil {
		t.Errorf("Update with the change taken back: %v", err)
	}
	if after := b.node(machine); after == nil || after.UID != before.UID {
		t.Error("the instance was touched")
	}
}

func isReason(err error, reason machinev1beta1.MachineStatusError) bool {
	return err != nil && reporting.Typed(runs.Update, err).Reason == reason
}

// loseState removes the Secret with a Machine's state, finalizer and all.
func (b *bench) loseState(machine *machinev1beta1.Machine) {
	b.t.Helper()
	key := state.KeyFor(machine.Namespace, machine.UID)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := plane.Client.Patch(b.t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if err == nil {
		err = plane.Client.Delete(b.t.Context(), secret)
	}
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
}

// misplace removes the Secret with a Machine's state, and returns what puts it back.
func (b *bench) misplace(t *testing.T, machine *machinev1beta1.Machine) (restore func()) {
	key := state.KeyFor(machine.Namespace, machine.UID)
	kept := &corev1.Secret{}
	if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, kept); err != nil {
		t.Fatal(err)
	}
	b.loseState(machine)
	return func() {
		kept.ResourceVersion, kept.UID = "", ""
		if err := plane.Create(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
	}
}

// vanish removes a Machine from the API server by force.
func (b *bench) vanish(machine *machinev1beta1.Machine) {
	b.t.Helper()
	live := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.Name}}
	err := plane.Client.Patch(b.t.Context(), live, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if err == nil {
		err = plane.Client.Delete(b.t.Context(), live)
	}
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
}

// passing is a real clock whose time passes by hand.
type passing struct {
	clock.RealClock
	now clock.PassiveClock
}

func (p passing) Now() time.Time { return p.now.Now() }

// later lets time pass, so that a lookup that finds nothing counts, and a drift check is due.
func (b *bench) later(after time.Duration) { b.clock.SetTime(b.clock.Now().Add(after)) }

// lose leaves a Machine as a manager does that was killed after its engine made the instance and
// before the state was saved.
func (b *bench) lose(machine *machinev1beta1.Machine, owner string) {
	b.t.Helper()
	key := state.KeyFor(machine.Namespace, machine.UID)
	b.loseState(machine)
	lock := state.Lock{Owner: owner, Run: "lost", Operation: string(runs.Create), Epoch: state.Epoch{Lease: "lease", Holder: owner}}
	_, err := b.store.Acquire(b.t.Context(), key, state.AcquireOptions{
		Lock: lock, Meta: record.NewPatch().SetIntent(record.Intent{Operation: runs.Create, Run: "lost"}).MetaPatch,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestALostInstanceIsFoundAndNotMadeTwice(t *testing.T) {
	eachEngine(t, aLostInstanceIsFoundAndNotMadeTwice)
}

func aLostInstanceIsFoundAndNotMadeTwice(t *testing.T, b *bench) {
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	b.lose(machine, b.owner)
	b.bring(machine)
	if after := b.node(machine); after == nil || after.UID != before.UID {
		t.Fatalf("the Node is %v, want the one with UID %s", after, before.UID)
	}
	b.loseState(machine)
	b.bring(machine)
	if told := strings.Join(b.warnings(), "\n"); !strings.Contains(told, "StateLost") {
		t.Errorf("the state was deleted; the warnings are %q", told)
	}
	b.lose(machine, b.owner)
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if after := b.node(machine); after != nil {
		t.Error("an instance that the state had lost outlived its Machine")
	}
}

func TestAnIntentWithoutAnInstanceIsJustCreated(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	_, err := b.store.Acquire(t.Context(), state.KeyFor(machine.Namespace, machine.UID), state.AcquireOptions{
		Lock: state.Lock{Owner: b.owner, Run: "lost", Operation: string(runs.Create)},
		Meta: record.NewPatch().SetIntent(record.Intent{Operation: runs.Create, Run: "lost"}).MetaPatch,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.drive(b.Create, machine); err != nil {
		t.Fatal(err)
	}
	if b.node(machine) == nil {
		t.Error("nothing was created")
	}
	if got := b.output(machine); !strings.HasPrefix(got, "(Lookup of ") || !strings.Contains(got, "\n(End of the lookup; create follows)\n") {
		t.Errorf("what the engine said does not separate the lookup from the create:\n%s", got)
	}
}

func TestAnInstanceOfSomebodyElseIsNeverTakenOver(t *testing.T) {
	eachEngine(t, anInstanceOfSomebodyElseIsNeverTakenOver)
}

func anInstanceOfSomebodyElseIsNeverTakenOver(t *testing.T, b *bench) {
	machine := b.machine()
	foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name}}
	if err := plane.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	b.lose(machine, b.owner)
	err := b.drive(b.Create, machine)
	if err == nil || !strings.Contains(err.Error(), "an instance of another owner is in the way") {
		t.Errorf("Create: %v, want a refusal", err)
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if b.node(machine) == nil {
		t.Error("deleting the Machine removed the instance of another")
	}
}

func TestALockIsTakenOverOnlyFromTheDead(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.lose(machine, "owner-0")
	var err error
	for deadline := time.Now().Add(patience); err == nil || !strings.Contains(err.Error(), "owner-0"); err = b.Create(t.Context(), machine) {
		if time.Now().After(deadline) {
			t.Fatalf("Create under a foreign lock: %v, want that it waits for its owner", err)
		}
		time.Sleep(pause)
	}
	if _, waiting := actuators.AsRequeueAfter(err); !waiting || b.node(machine) != nil {
		t.Fatalf("Create under a foreign lock: %v, want that it waits and makes nothing", err)
	}
	proof := "owner-0"
	b.leads.proven.Store(&proof)
	deadline := time.Now().Add(patience)
	for b.drive(b.Create, machine) != nil && time.Now().Before(deadline) {
		time.Sleep(pause)
	}
	b.bring(machine)
}

func TestAStateWithoutAMachineIsReportedAndKept(t *testing.T) {
	b := newBench(t)
	kept, gone := b.machine(), b.machine()
	b.lose(kept, b.owner)
	b.lose(gone, b.owner)
	b.vanish(gone)
	found := b.orphans()
	if _, err := found.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := gaugeOf(t, found, "machine_iac_orphaned_states"); got != 1 {
		t.Errorf("%v states without a Machine are counted, want the one alone", got)
	}
	if _, err := b.store.Get(t.Context(), state.KeyFor(b.namespace, gone.UID)); err != nil {
		t.Errorf("the state of the gone Machine: %v", err)
	}
}

func TestTheLockOfADeadRunIsGivenBackWhereTheMachineIsGone(t *testing.T) {
	b := newBench(t)
	dead, alive := b.machine(), b.machine()
	b.lose(dead, "owner-0")
	b.lose(alive, "owner-2")
	b.vanish(dead)
	b.vanish(alive)
	proof := "owner-0"
	b.leads.proven.Store(&proof)
	if _, err := b.orphans().Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		machine *machinev1beta1.Machine
		locked  bool
	}{"of the dead": {dead, false}, "of one whose engines may run": {alive, true}} {
		left, err := b.store.Get(t.Context(), state.KeyFor(b.namespace, tc.machine.UID))
		if err != nil {
			t.Fatal(err)
		}
		if locked := left.Lock != nil; locked != tc.locked || left.Meta["intent"] == "" {
			t.Errorf("%s: locked %t with intent %q, want locked %t and the intent kept", name, locked, left.Meta["intent"], tc.locked)
		}
	}
}

// A destroy that was begun before the Machine's finalizer was taken away is finished from what is
// recorded with the state.
func TestADestroyIsFinishedWithoutItsMachine(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	key := state.KeyFor(machine.Namespace, machine.UID)
	_, err := b.store.Acquire(t.Context(), key, state.AcquireOptions{
		Lock: state.Lock{Owner: b.owner, Run: "cut", Operation: string(runs.Destroy), Epoch: b.leads.Epoch()},
		Meta: record.NewPatch().SetIntent(record.Intent{Operation: runs.Destroy, Run: "cut"}).MetaPatch,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.vanish(machine)
	orphans := b.orphans()
	deadline := time.Now().Add(patience)
	for b.node(machine) != nil || !b.stateIsGone(key) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the instance is %v and the state gone: %t", b.node(machine) != nil, b.stateIsGone(key))
		}
		if _, err := orphans.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (b *bench) stateIsGone(key state.Key) bool {
	_, err := b.store.Get(b.t.Context(), key)
	return errors.Is(err, state.ErrNotFound)
}

func TestAMissingSecretIsNamedAndNoFaultOfTheMachine(t *testing.T) {
	b := newBench(t)
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "late"} })
	err := b.drive(b.Create, machine)
	if err == nil || !strings.Contains(err.Error(), b.namespace+"/late") || actuators.IsInvalidConfiguration(err) {
		t.Fatalf("Create: %v, want a retryable error that names the Secret", err)
	}
	secret := &corev1.Secret{}
	if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "kubemark-credentials"}, secret); err != nil {
		t.Fatal(err)
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "late"}, Data: secret.Data}
	if err := plane.Create(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	b.bring(machine)
}

func TestAnUnknownFieldIsWarnedOf(t *testing.T) {
	b := newBench(t)
	machine := b.machine(func(spec map[string]any) { spec["cpus"] = 4 })
	b.bring(machine)
	for {
		select {
		case event := <-b.recorder.(*events.FakeRecorder).Events:
			if strings.Contains(event, "IgnoredField") && strings.Contains(event, "spec.providerSpec.value.cpus") {
				return
			}
		default:
			t.Fatal("no event names the field that has no effect")
		}
	}
}

func TestAnUnknownKindNamesWhatIsKnown(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Nothing"}`)}
	err := b.Create(t.Context(), machine)
	if !actuators.IsInvalidConfiguration(err) || !strings.Contains(err.Error(), "KubemarkMachineProviderConfig") {
		t.Errorf("Create: %v, want an InvalidConfiguration that names the known kinds", err)
	}
}

// known returns what modules may know of the cluster; nil, and not a nil pointer, for nothing.
func (b *bench) known() module.ClusterReader {
	if b.cluster == nil {
		return &module.Cluster{Installation: string(b.installation.UID())}
	}
	return b.cluster
}
