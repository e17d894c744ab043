//go:build peers

package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

const (
	root        = "../.."
	clusterID   = "demo-x7k2p"
	patience    = 5 * time.Minute
	stopTimeout = 3 * time.Minute
)

// stories are the peers and what they do.
var stories = []struct {
	peer, story string
	play        func(*testing.T, *world)
}{
	{"cluster-machine-approver", "approves the certificates of a Node", approves},
	{"cluster-control-plane-machine-set-operator", "rolls three masters, one at a time", rolls},
	{"cluster-autoscaler", "scales from and to zero as provider openshift", func(t *testing.T, w *world) {
		scales(t, w, "openshift")
	}},
	{"cluster-autoscaler", "scales from and to zero as provider clusterapi", func(t *testing.T, w *world) {
		scales(t, w, "clusterapi")
	}},
	{"cluster-autoscaler-operator", "annotates a MachineSet and keeps a Deployment", annotates},
}

func TestPeers(t *testing.T) {
	log.SetLogger(logr.Discard())
	var w *world
	for _, s := range stories {
		t.Run(s.peer+" "+s.story, func(t *testing.T) {
			if _, err := os.Stat(program(s.peer)); err != nil {
				t.Skipf("%s is missing: build it, and set PEERS to its folder", program(s.peer))
			}
			if w == nil {
				w = openWorld(t)
			}
			s.play(t, w)
		})
	}
	if w != nil {
		w.close(t)
	}
}

// program returns the file of a peer.
func program(name string) string {
	if folder := os.Getenv("PEERS"); folder != "" {
		return filepath.Join(folder, name)
	}
	return filepath.Join(root, "bin", "peers", name)
}

// world is a development cluster of OpenShift on a simulated vCenter, with the manager running.
type world struct {
	dir     string
	lab     *lab.Lab
	config  *rest.Config
	client  client.Client
	manager *lab.Manager
	vcenter *vcenter.VCenter
}

// openWorld starts everything. It outlives the test of the first story.
func openWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "machine-iac-peers-")
	must(t, err)
	w := &world{dir: dir}
	ctx := context.WithoutCancel(t.Context())
	// Not by machine-api-operator, whose Pods would need a control-plane Node without a Machine.
	w.lab, err = lab.Open(ctx, lab.Options{Root: root, Dir: dir, Progress: os.Stdout})
	must(t, err)
	defer func() {
		if t.Failed() {
			w.close(t)
		}
	}()
	w.config, err = w.lab.Cluster.AdminConfig()
	must(t, err)
	scheme, err := controlplane.Scheme()
	must(t, err)
	w.client, err = client.New(w.config, client.Options{Scheme: scheme})
	must(t, err)
	plane := &controlplane.ControlPlane{Config: w.config}
	must(t, errors.Join(plane.InstallClusterConfig(), plane.InstallControlPlaneMachineSets()))
	w.vcenter, err = vcenter.Start(ctx, w.lab.Path("bin", "vcsim"), dir)
	must(t, err)
	w.configure(t)
	w.manager, err = w.lab.StartManager(ctx)
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// configure creates what OpenShift says of a cluster on the vCenter.
func (w *world) configure(t *testing.T) {
	t.Helper()
	authorities, err := os.ReadFile(w.vcenter.Environment()["SSL_CERT_FILE"])
	must(t, err)
	const managed = "openshift-config-managed"
	named := metav1.ObjectMeta{Name: "cluster"}
	infrastructure := &configv1.Infrastructure{ObjectMeta: named, Spec: configv1.InfrastructureSpec{
		PlatformSpec: configv1.PlatformSpec{Type: configv1.VSpherePlatformType},
	}}
	proxy := &configv1.Proxy{ObjectMeta: named}
	gates := &configv1.FeatureGate{ObjectMeta: named}
	for _, object := range []client.Object{
		infrastructure, proxy, gates, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managed}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: managed, Name: "kube-cloud-config"},
			Data:       map[string]string{"ca-bundle.pem": string(authorities)},
		},
		secret("worker-user-data", map[string]string{"userData": "{}"}),
		secret("vsphere-cloud-credentials", map[string]string{
			vcenter.Name + ".username": vcenter.Username, vcenter.Name + ".password": vcenter.Password,
		}),
	} {
		must(t, w.client.Create(t.Context(), object))
	}
	infrastructure.Status = configv1.InfrastructureStatus{
		InfrastructureName: clusterID, PlatformStatus: &configv1.PlatformStatus{Type: configv1.VSpherePlatformType},
		ControlPlaneTopology:   configv1.HighlyAvailableTopologyMode,
		InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
	}
	proxy.Status.HTTPSProxy = w.vcenter.Environment()["HTTPS_PROXY"]
	gates.Status.FeatureGates = []configv1.FeatureGateDetails{{Version: release}}
	for _, object := range []client.Object{infrastructure, proxy, gates} {
		must(t, w.client.Status().Update(t.Context(), object))
	}
}

func secret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: lab.Namespace, Name: name, Labels: map[string]string{references.Label: "true"},
	}, StringData: data}
}

// close stops everything. The data stays if something failed.
func (w *world) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopTimeout)
	defer cancel()
	var problems []error
	if w.manager != nil {
		problems = append(problems, w.manager.Stop(stopTimeout))
	}
	if w.vcenter != nil {
		problems = append(problems, w.vcenter.Close())
	}
	if err := errors.Join(append(problems, w.lab.Close(ctx))...); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("the cluster's data and all logs are in %s", w.dir)
	} else if err := w.lab.Cluster.Purge(ctx); err != nil {
		t.Error(err)
	}
}

// release is the version in the FeatureGate's status.
const release = "1.0.0"

// start starts a peer as administrator until the story ends.
func (w *world) start(t *testing.T, name string, environment []string, arguments ...string) {
	t.Helper()
	p := &lab.Process{What: name, Log: filepath.Join(w.dir, "logs", name+".log")}
	must(t, p.Start(program(name), arguments, append(environment,
		"HOME="+w.dir, "KUBECONFIG="+w.lab.Cluster.AdminKubeconfig(), "RELEASE_VERSION="+release)))
	t.Cleanup(func() {
		if !p.Running() {
			t.Errorf("%s has ended: %s; its log is %s", name, p.State(), p.Log)
		}
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
}

// port returns a free port of 127.0.0.1.
func port(t *testing.T) string {
	t.Helper()
	free, err := lab.FreePort()
	must(t, err)
	return free
}

// until waits until check returns nil, and logs how long it took.
func until(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begun := time.Now()
	for {
		err := check(ctx)
		if err == nil {
			t.Logf("%5.1f s until %s", time.Since(begun).Seconds(), what)
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting until %s: not within %s: %v", what, patience, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// set returns the example MachineSet of a module.
func (w *world) set(t *testing.T, module string) *machinev1beta1.MachineSet {
	t.Helper()
	content, err := os.ReadFile(w.lab.Path("modules", module, "examples", "machineset.yaml"))
	must(t, err)
	set := &machinev1beta1.MachineSet{}
	must(t, yaml.UnmarshalStrict(content, set))
	return set
}

// vsphereSet returns the example MachineSet for the simulated vCenter.
func (w *world) vsphereSet(t *testing.T, replicas int32) *machinev1beta1.MachineSet {
	t.Helper()
	set := w.set(t, "vsphere")
	set.Spec.Replicas = &replicas
	raw := string(set.Spec.Template.Spec.ProviderSpec.Value.Raw)
	for from, to := range map[string]string{
		`"vcenter.example.com"`: `"` + vcenter.Name + `"`, `"/DC0/vm/demo-x7k2p"`: `"` + vcenter.Folder + `"`,
		`"demo-x7k2p-rhcos-generated-region-generated-zone"`: `"` + vcenter.Template + `"`,
	} {
		raw = strings.Replace(raw, from, to, 1)
	}
	set.Spec.Template.Spec.ProviderSpec.Value.Raw = []byte(raw)
	return set
}

func (w *world) machines(ctx context.Context, labels map[string]string) ([]machinev1beta1.Machine, error) {
	var list machinev1beta1.MachineList
	err := w.client.List(ctx, &list, client.InNamespace(lab.Namespace), client.MatchingLabels(labels))
	return list.Items, err
}

// join creates the Node of a Machine on the vCenter with the addresses that its guest has.
func (w *world) join(ctx context.Context, machine *machinev1beta1.Machine,
	labels map[string]string) (*corev1.Node, error) {
	vm, err := w.vcenter.VM(ctx, vcenter.Folder+"/"+machine.Name)
	if err != nil {
		return nil, err
	}
	if vm == nil || machine.Spec.ProviderID == nil {
		return nil, fmt.Errorf("%s has no virtual machine or no provider ID", machine.Name)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: machine.Name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{ProviderID: *machine.Spec.ProviderID},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: vm.Address}, {Type: corev1.NodeHostName, Address: machine.Name},
		}},
	}
	return node, client.IgnoreAlreadyExists(w.client.Create(ctx, node))
}
