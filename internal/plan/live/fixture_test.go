package live

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/iac"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/actuators/terraform"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

// plane is shared by the tests of this package, because starting an API server is expensive.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	if address := os.Getenv(insideVariable); address != "" {
		if err := runInside(address, os.Args[1:]); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	log.SetLogger(logr.Discard())
	var err error
	if plane, err = controlplane.Start(controlplane.Default); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	if cache, err = os.MkdirTemp("", "modules"); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(cache)
	if err := plane.Stop(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
	}
	os.Exit(code)
}

// cache holds the initialised modules of the tests.
var cache string

// bench is a cluster with MachineSets whose Machines have real instances, created by the actuator.
type bench struct {
	t         *testing.T
	namespace string
	client    client.Client
	catalog   *module.Catalog
	actuator  *iac.Actuator
	planner   *offline.Planner
	// pool has the actuator's runs.
	pool *runs.Pool
	// environment is the engines' environment.
	environment map[string]string
	// keys sign what the actuator stores, and are the user's, too.
	keys *store.Keys
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// confined returns a sandbox like the manager's and the plugin's.
func confined(t *testing.T, environment map[string]string) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred, Read: sandbox.Named(environment)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newBench(t *testing.T, environment map[string]string) *bench {
	t.Helper()
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "module.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, namespace: namespace, client: plane.Client, environment: environment}
	if b.keys, err = store.ReadKeys(key); err != nil {
		t.Fatal(err)
	}
	b.load(nil)
	b.start()
	b.planner, err = offline.New(offline.Options{
		Binary: b.engine(), CacheDir: cache, ProviderMirror: "../../../bin/mirror", Parallel: 2,
		Sandbox: confined(t, environment),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.planner.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// load loads modules; by default those of this repository.
func (b *bench) load(loaded []*module.Module) {
	b.t.Helper()
	var err error
	if loaded == nil {
		if loaded, err = load.Modules(modules.FS); err != nil {
			b.t.Fatal(err)
		}
	}
	if b.catalog, err = module.NewCatalog(loaded...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) engine() tofu.Binary {
	b.t.Helper()
	path := os.Getenv("TOFU")
	if path == "" {
		path = "../../../bin/tofu"
	}
	binary, err := tofu.Find(b.t.Context(), tofu.FindOptions{Path: path})
	if err != nil {
		b.t.Fatalf("%v; run 'make tools'", err)
	}
	return binary
}

func (b *bench) start() {
	b.t.Helper()
	engine, err := tofu.New(tofu.Options{
		Binary: b.engine(), WorkDir: shortdir.New(b.t), ProviderMirror: absolute(b.t, "../../../bin/mirror"), Slots: 2,
		WaitDelay:   10 * time.Second,
		Environment: b.environment, Sandbox: confined(b.t, b.environment),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.pool = runs.New(runs.Options{MaxConcurrent: 2, RetryBase: 10 * time.Millisecond, RetryMax: 50 * time.Millisecond})
	b.actuator, err = iac.New(iac.Options{
		Client: b.client, Recorder: events.NewFakeRecorder(1000), Catalog: b.catalog,
		Store: state.New(b.client, state.Options{}),
		Runners: map[v1alpha1.Engine]runner.Runner{v1alpha1.EngineTerraform: terraform.New(engine,
			backend.New(backend.Options{}))},
		Pool: b.pool, Owner: "owner-1", Leader: leadership.Alone("owner-1"),
		Modules: store.New(b.client, store.Options{Keys: b.keys}),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.actuator.Start(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("stopping the actuator: %v", err)
		}
	})
}

func (b *bench) create(objects ...client.Object) {
	b.t.Helper()
	if err := plane.Create(b.t.Context(), objects...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) secret(name string, content map[string]string) {
	b.t.Helper()
	b.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, StringData: content})
}

// newKubemark returns a bench whose instances are Nodes of the API server.
func newKubemark(t *testing.T) (*bench, map[string]any) {
	t.Helper()
	b := newBench(t, nil)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "kubemark"}}
	b.create(account, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"},
			Verbs: []string{"get", "list", "create", "patch", "delete"}}},
	}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: account.Name}},
	})
	token := &authenticationv1.TokenRequest{}
	if err := b.client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	b.secret("credentials", map[string]string{"server": plane.Config.Host, "token": token.Status.Token,
		"ca.crt": string(plane.Config.CAData)})
	return b, map[string]any{
		"apiVersion": "kubemarkproviderconfig.openshift.io/v1alpha1", "kind": "KubemarkMachineProviderConfig",
		"cpu": 4, "memory": "8Gi", "instanceType": "hollow", "region": "region-a", "zone": "zone-a",
		"credentialsSecret": map[string]any{"name": "credentials"},
	}
}

// newVSphere returns a bench whose instances are virtual machines of a simulated vCenter.
func newVSphere(t *testing.T) (*bench, map[string]any, *vcenter.VCenter) {
	t.Helper()
	simulated, err := vcenter.Start(t.Context(), absolute(t, "../../../bin/vcsim"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := simulated.Close(); err != nil {
			t.Error(err)
		}
	})
	b := newBench(t, simulated.Environment())
	b.secret("credentials",
		map[string]string{vcenter.Name + ".username": vcenter.Username, vcenter.Name + ".password": vcenter.Password})
	b.secret("user-data", map[string]string{"userData": `{"ignition":"t0p-secret"}`})
	return b, map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "VSphereMachineProviderSpec",
		"credentialsSecret": map[string]any{"name": "credentials"},
		"userDataSecret":    map[string]any{"name": "user-data"},
		"template":          vcenter.Template, "numCPUs": 2, "numCoresPerSocket": 1, "memoryMiB": 2048, "diskGiB": 12,
		"network": map[string]any{"devices": []any{map[string]any{"networkName": "VM Network"}}},
		"workspace": map[string]any{
			"server": vcenter.Name, "datacenter": "DC0", "folder": vcenter.Folder,
			"datastore":    "/DC0/datastore/LocalDS_0",
			"resourcePool": "/DC0/host/DC0_C0/Resources",
		},
	}, simulated
}

// newOpenStack returns a bench whose instances are servers of a simulated cloud.
func newOpenStack(t *testing.T) (*bench, map[string]any) {
	t.Helper()
	cloud := openstack.Start()
	t.Cleanup(cloud.Close)
	b := newBench(t, nil)
	b.secret("credentials", map[string]string{"clouds.yaml": cloud.CloudsYAML(), "cacert": cloud.CACert()})
	return b, map[string]any{
		"apiVersion": "machine.openshift.io/v1alpha1", "kind": "OpenstackProviderSpec",
		"cloudName":    openstack.CloudName,
		"cloudsSecret": map[string]any{"name": "credentials"}, "flavor": "m1.xlarge", "image": openstack.Cluster +
			"-rhcos",
		"networks": []any{map[string]any{"filter": map[string]any{"name": openstack.Cluster + "-openshift"}}},
	}
}

func with(spec, other map[string]any) map[string]any {
	changed := map[string]any{}
	for _, fields := range []map[string]any{spec, other} {
		for name, value := range fields {
			changed[name] = value
		}
	}
	return changed
}

// set creates a MachineSet.
func (b *bench) set(replicas int32, spec map[string]any) *machinev1beta1.MachineSet {
	b.t.Helper()
	set := builder.In(b.namespace, builder.MachineSet(builder.WithReplicas(replicas)))
	set.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	b.create(set)
	return set
}

// machine creates a Machine of a MachineSet, without an instance.
func (b *bench) machine(set *machinev1beta1.MachineSet, name string) *machinev1beta1.Machine {
	b.t.Helper()
	made := builder.Machine(builder.WithOwner(set))
	made.Name = set.Name + "-" + name
	made.Spec = *set.Spec.Template.Spec.DeepCopy()
	b.create(made)
	return made
}

// bring creates the Machine's instance.
func (b *bench) bring(machine *machinev1beta1.Machine) {
	b.t.Helper()
	for _, verb := range []func(context.Context, *machinev1beta1.Machine) error{b.actuator.Create, b.actuator.Update} {
		if err := b.drive(verb, machine); err != nil {
			b.t.Fatal(err)
		}
	}
}

// rest waits until no run of the Machine goes on, such as a look at an instance whose change was refused.
func (b *bench) rest(machine *machinev1beta1.Machine) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		switch run, _ := b.pool.Status(runs.Key(machine.UID)); {
		case !run.Active():
			return
		case time.Now().After(deadline):
			b.t.Fatalf("still running after %s: %+v", patience, run)
		}
	}
}

// patience bounds what takes seconds on an idle machine.
const patience = 4 * time.Minute

// pause is the delay between calls of a verb during a run. Each call reads and writes a lot at the API server.
const pause = 100 * time.Millisecond

// drive calls a verb until it is done, and returns its last error.
func (b *bench) drive(verb func(context.Context, *machinev1beta1.Machine) error,
	machine *machinev1beta1.Machine) error {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if err := plane.Sync(b.t.Context(), machine, record.WitnessAnnotation); err != nil {
			b.t.Fatal(err)
		}
		err := verb(b.t.Context(), machine)
		if _, busy := actuators.AsRequeueAfter(err); !busy {
			return err
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("still in progress: %v", err)
		}
		time.Sleep(pause)
	}
}

// manifest returns an object as a file.
func (b *bench) manifest(object client.Object) preview.File {
	b.t.Helper()
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		b.t.Fatalf("%T is no object", object)
	}
	copied.SetManagedFields(nil)
	kind := preview.KindMachineSet
	switch object.(type) {
	case *machinev1beta1.Machine:
		kind = preview.KindMachine
	case *v1beta1.MachineDeployment:
		kind = preview.KindMachineDeployment
	}
	copied.GetObjectKind().SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(kind))
	content, err := yaml.Marshal(copied)
	if err != nil {
		b.t.Fatal(err)
	}
	return preview.File{Name: "edit.yaml", Content: content}
}

func edited(set *machinev1beta1.MachineSet, spec map[string]any) *machinev1beta1.MachineSet {
	changed := set.DeepCopy()
	changed.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	return changed
}

// plan plans an object against the cluster, and checks that it writes nothing.
func (b *bench) plan(object client.Object, change func(*Options)) *preview.Preview {
	b.t.Helper()
	requests, _, err := preview.Read([]preview.File{b.manifest(object)}, preview.Cluster{Namespace: b.namespace},
		b.catalog)
	if err != nil {
		b.t.Fatal(err)
	}
	options := Options{Client: b.client, Catalog: b.catalog, Planner: b.planner, Engine: "tofu",
		Environment: around{environment: b.environment}, ModuleKeys: b.keys}
	if change != nil {
		change(&options)
	}
	before := b.versions()
	result, err := Plan(b.t.Context(), requests, options)
	if err != nil {
		b.t.Fatal(err)
	}
	if after := b.versions(); before != after {
		b.t.Errorf("the cluster was written to:\n%s\n%s", before, after)
	}
	return result
}

// versions returns the resourceVersions of everything that a plan reads.
func (b *bench) versions() string {
	b.t.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &machinev1beta1.MachineList{},
		&machinev1beta1.MachineSetList{}} {
		if err := b.client.List(b.t.Context(), list, client.InNamespace(b.namespace)); err != nil {
			b.t.Fatal(err)
		}
		switch list := list.(type) {
		case *corev1.SecretList:
			for _, one := range list.Items {
				versions["secret "+one.Name] = one.ResourceVersion
			}
		case *machinev1beta1.MachineList:
			for _, one := range list.Items {
				versions["machine "+one.Name] = one.ResourceVersion
			}
		case *machinev1beta1.MachineSetList:
			for _, one := range list.Items {
				versions["set "+one.Name] = one.ResourceVersion
			}
		}
	}
	raw, err := json.Marshal(versions)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(raw)
}

func (b *bench) store() *state.Store { return state.New(b.client, state.Options{}) }

func keyOf(machine *machinev1beta1.Machine) state.Key {
	return state.KeyFor(machine.Namespace, machine.UID)
}

// refuses reports whether an error means that a change is refused.
func refuses(err error) bool {
	refused, ok := errors.AsType[*actuators.MachineError](err)
	return ok && refused.Reason == machinev1beta1.UnsupportedChangeMachineError
}
