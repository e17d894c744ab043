//go:build life

package life

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/test/chaos"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

const (
	clusterID   = "demo-x7k2p"
	poll        = 250 * time.Millisecond
	stopTimeout = 3 * time.Minute
	// settleSeconds is how long the infrastructure of copied modules takes to settle.
	settleSeconds = 5
)

// patience is for what takes seconds on an idle machine.
var patience = flag.Duration("patience", 3*time.Minute, "how long a step waits for what takes seconds on an idle machine")

// quick has absences believed within seconds, as the tests of the story do. What it finds is not written into the page.
var quick = flag.Bool("quick", false, "use copies of the modules whose infrastructure settles within seconds, and leave docs/platforms.md alone")

// managerFlags leave a busy machine time for the heartbeats of the leader.
var managerFlags = []string{
	"--leader-elect-lease-duration=20s", "--leader-elect-renew-deadline=14s", "--leader-elect-retry-period=2s", "--cluster-id=" + clusterID,
	"--adoption=OnRequest", "--inventory-interval=30s", "--orphan-grace-period=1s",
}

// world is a development cluster with the operator installed, and one platform at a time.
type world struct {
	t       *testing.T
	dir     string
	lab     *lab.Lab
	client  client.Client
	manager *lab.Manager
	// arguments are those that the manager was started with first.
	arguments []string

	platform *platform
	*site
	// names are of all Machines and instances that there ever were on the platform.
	names []string
	// inTime says that the last kill came before the create had ended.
	inTime bool
}

// openWorld starts the cluster, which outlives the test of the first platform.
func openWorld(ctx context.Context, t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "machine-iac-life-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // as the kernel reports a process's folder
		t.Fatal(err)
	}
	w := &world{dir: dir}
	if w.lab, err = lab.Open(context.WithoutCancel(ctx), lab.Options{Root: root, Dir: dir, Progress: os.Stdout, Operator: true}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			w.close(t)
		}
	}()
	config, err := w.lab.Cluster.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // the API server may be asked often here
	scheme, err := controlplane.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if w.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.InstallClusterConfig(config); err != nil {
		t.Fatal(err)
	}
	return w
}

// close stops everything. Its data stays where something has failed.
func (w *world) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopTimeout)
	defer cancel()
	if err := w.lab.Close(ctx); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("the cluster's data and all logs are kept in %s", w.dir)
	} else if err := w.lab.Cluster.Purge(ctx); err != nil {
		t.Error(err)
	}
}

// on returns the world with a platform's infrastructure, what the cluster says of it, and the manager that runs.
func (w *world) on(t *testing.T, p *platform, program string) *world {
	t.Helper()
	here := &world{t: t, dir: t.TempDir(), lab: w.lab, client: w.client, platform: p}
	here.site = p.open(here)
	here.configure()
	if here.credentials != nil {
		here.create(here.credentials)
	}
	here.create(userData("first"))
	arguments := append(slices.Clone(managerFlags), here.flags...)
	if program != "" {
		arguments = append(arguments, "--provider-mirror="+here.mirror(program))
	}
	if *quick {
		copies := filepath.Join(here.dir, filepath.Dir(p.module))
		if err := errors.Join(chaos.QuickCopy(w.lab.Path(p.module), copies, settleSeconds), change(&here.set.Spec.Template.Spec, chaos.Quicken)); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, "--module-dir="+copies)
	}
	here.arguments = arguments
	here.start(arguments...)
	t.Cleanup(func() {
		if err := here.manager.Stop(stopTimeout); err != nil {
			t.Error(err)
		}
	})
	return here
}

func (w *world) start(arguments ...string) {
	w.t.Helper()
	var err error
	if w.manager, err = w.lab.StartManager(w.t.Context(), arguments...); err != nil {
		w.t.Fatal(err)
	}
}

// again starts a manager that has ended.
func (w *world) again() {
	w.t.Helper()
	next, err := w.manager.Restart(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.manager = next
}

// mirror returns a mirror with a provider, and the manifest that vouches for it beside it. An engine follows no link that leads out of a mirror.
func (w *world) mirror(program string) string {
	w.t.Helper()
	source, version, err := w.platform.requires(root)
	if err != nil {
		w.t.Fatal(err)
	}
	mirror := filepath.Join(w.dir, "providers")
	file := filepath.Join("registry.opentofu.org", filepath.FromSlash(source), version, runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-"+w.platform.provider+"_v"+version)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(mirror, file)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	built, err := os.Open(program) //nolint:gosec // a program of the developer's
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = built.Close() }()
	target, err := os.OpenFile(filepath.Join(mirror, file), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700) //nolint:gosec // it is run
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(target, sum), built)
	if err := errors.Join(err, target.Close(), os.WriteFile(mirror+".sha256", []byte(hex.EncodeToString(sum.Sum(nil))+"  "+filepath.ToSlash(file)+"\n"), 0o600)); err != nil {
		w.t.Fatal(err)
	}
	return mirror
}

// configure has the cluster say how the infrastructure is reached, as OpenShift does.
func (w *world) configure() {
	w.t.Helper()
	if w.status == nil {
		return
	}
	managed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config-managed"}}
	if err := client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), managed)); err != nil {
		w.t.Fatal(err)
	}
	named := metav1.ObjectMeta{Name: "cluster"}
	infrastructure := &configv1.Infrastructure{ObjectMeta: named, Spec: w.spec}
	proxy := &configv1.Proxy{ObjectMeta: named}
	w.create(infrastructure)
	w.create(proxy)
	w.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: managed.Name, Name: "kube-cloud-config"}, Data: map[string]string{"ca-bundle.pem": w.authorities},
	})
	infrastructure.Status = *w.status
	infrastructure.Status.InfrastructureName = clusterID
	infrastructure.Status.ControlPlaneTopology, infrastructure.Status.InfrastructureTopology = configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode
	proxy.Status.HTTPSProxy = w.proxy
	if err := errors.Join(w.client.Status().Update(w.t.Context(), infrastructure), w.client.Status().Update(w.t.Context(), proxy)); err != nil {
		w.t.Fatal(err)
	}
}

// create makes an object that is there until the platform is done with.
func (w *world) create(object client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.force(context.Background(), object); err != nil {
			w.t.Error(err)
		}
	})
}

func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name, Labels: map[string]string{references.Label: "true"}}, Data: data}
}

// userData is the Secret with the user data, which names a file by the word.
func userData(word string) *corev1.Secret {
	return secret("worker-user-data", map[string][]byte{"userData": []byte(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/` + word + `"}]}}`)})
}

// userDataIs writes the Secret, which may not be there.
func (w *world) userDataIs(t *testing.T, word string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := w.client.Update(ctx, userData(word))
	if apierrors.IsNotFound(err) {
		err = w.client.Create(ctx, userData(word))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// until waits until check returns nil, and fails the step with what it returned last.
func (w *world) until(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), *patience)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting until %s: not within %s: %v", what, *patience, last)
		case <-time.After(poll):
		}
	}
}

// kubectl runs kubectl as the administrator, with the plugin beside it, and returns what it prints.
func (w *world) kubectl(ctx context.Context, arguments ...string) ([]byte, error) {
	bin := w.lab.Path("bin")
	command := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), append(arguments, "--namespace", lab.Namespace)...)
	command.Dir = w.dir
	command.Env = []string{"PATH=" + bin, "KUBECONFIG=" + w.lab.Cluster.AdminKubeconfig(), "HOME=" + w.dir}
	var out, notes bytes.Buffer
	command.Stdout, command.Stderr = &out, &notes
	if err := command.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("kubectl %s: %w: %s%s", strings.Join(arguments, " "), err, out.String(), notes.String())
	}
	return out.Bytes(), nil
}

func (w *world) must(t *testing.T, arguments ...string) []byte {
	t.Helper()
	out, err := w.kubectl(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func phaseOf(machine *machinev1beta1.Machine) string {
	if machine.Status.Phase == nil {
		return ""
	}
	return *machine.Status.Phase
}

func conditionOf(machine *machinev1beta1.Machine, kind machinev1beta1.ConditionType) machinev1beta1.Condition {
	for _, one := range machine.Status.Conditions {
		if one.Type == kind {
			return one
		}
	}
	return machinev1beta1.Condition{}
}

// describe says how a Machine is.
func describe(machine *machinev1beta1.Machine) string {
	text := fmt.Sprintf("%s is %q", machine.Name, phaseOf(machine))
	if machine.Status.ErrorMessage != nil {
		text += ": " + *machine.Status.ErrorMessage
	}
	for _, one := range machine.Status.Conditions {
		if one.Status != corev1.ConditionTrue {
			text += fmt.Sprintf("; %s %s %s: %s", one.Type, one.Status, one.Reason, one.Message)
		}
	}
	return text
}
