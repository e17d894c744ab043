//go:build e2e_jobs

package e2ejobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/chaos"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const (
	root        = "../.."
	credentials = "kubemark-credentials"
	// nodeLabel is the label of the agent's Node, where the namespace's Pods run.
	nodeLabel    = "machine-iac.io/node-agent"
	nodeSelector = "scheduler.alpha.kubernetes.io/node-selector"
	component    = "app.kubernetes.io/component"
	// settleSeconds is the settlement period of the copied module.
	settleSeconds = 5
	patience      = 4 * time.Minute
	stopTimeout   = 4 * time.Minute
)

// world is a development cluster with a node that runs processes.
type world struct {
	*testing.T
	dir    string
	lab    *lab.Lab
	client client.Client
	nodes  *observe.NodeLog
	proxy  *apiproxy.Proxy
	seen   seen
	leads  *lab.Manager
	copied string
}

func open(t *testing.T) *world {
	t.Helper()
	log.SetLogger(logr.Discard()) // clients warn of injected faults
	dir, err := os.MkdirTemp("", "machine-iac-jobs-")
	w := &world{T: t, dir: dir, seen: seen{made: map[types.UID]batchv1.Job{}, secrets: map[types.UID]corev1.Secret{}}}
	w.must(err)
	w.lab, err = lab.Open(t.Context(), lab.Options{Root: root, Dir: dir, Progress: os.Stdout})
	w.must(err)
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
	config, err := w.lab.Cluster.AdminConfig()
	w.must(err)
	config.QPS = -1
	scheme, err := controlplane.Scheme()
	w.must(err)
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	clients, err := kubernetes.NewForConfig(config)
	w.must(err)
	authority, err := w.lab.Cluster.CAData()
	w.must(err)
	w.proxy, err = apiproxy.Open(w.lab.Cluster.Server(), authority)
	w.must(err)
	t.Cleanup(w.proxy.Close)
	w.copied = filepath.Join(dir, "modules")
	w.must(chaos.QuickCopy(w.lab.Path("modules", "kubemark"), w.copied, settleSeconds))
	w.must(w.lab.ApplyTree(t.Context(), w.lab.Path("install", "jobs")))
	w.startAgent()
	w.nodes, err = observe.WatchNodes(t.Context(), clients)
	w.must(err)
	t.Cleanup(w.nodes.Close)
	w.watch()
	return w
}

// step runs a part of the test. A failure does not stop the test.
func (w *world) step(name string, do func()) {
	whole := w.T
	whole.Run(name, func(t *testing.T) {
		w.T = t
		defer func() { w.T = whole }()
		do()
	})
}

// program returns a path in bin, or in a build that the environment names.
func (w *world) program() string {
	if built := os.Getenv("MACHINE_CONTROLLERS"); built != "" {
		return built
	}
	path, err := filepath.Abs(w.lab.Path("bin", "machine-controllers"))
	w.must(err)
	return path
}

// startAgent builds and starts the node agent. Its Pods find their programs in a separate folder.
func (w *world) startAgent() {
	w.Helper()
	agent, images := filepath.Join(w.dir, "nodeagent"), filepath.Join(w.dir, "images")
	build := exec.Command("go", "build", "-o", agent, ".")
	build.Dir = filepath.Join(root, "test", "nodeagent")
	if out, err := build.CombinedOutput(); err != nil {
		w.Fatalf("building the node agent: %v\n%s", err, out)
	}
	w.must(os.MkdirAll(images, 0o755))
	w.must(os.Symlink(w.program(), filepath.Join(images, "machine-controllers")))
	logs, err := os.Create(filepath.Join(w.dir, "logs", "nodeagent.log"))
	w.must(err)
	command := exec.Command(agent, "--kubeconfig", w.lab.Cluster.AdminKubeconfig(),
		"--dir", filepath.Join(w.dir, "pods"))
	w.must(os.MkdirAll(filepath.Join(w.dir, "pods"), 0o700))
	command.Env, command.Stdout, command.Stderr = []string{"PATH=" + images}, logs, logs
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w.must(command.Start())
	w.Cleanup(func() {
		w.check(command.Process.Kill())
		_ = command.Wait() // it was killed
	})
	_, err = w.lab.Kubectl(w.Context(), "annotate", "--overwrite", "namespace", lab.Namespace,
		nodeSelector+"="+nodeLabel+"=true")
	w.must(err)
	w.until("the node of the agent is there", func(ctx context.Context) error {
		name, err := w.lab.Kubectl(ctx, "get", "nodes", "-l", nodeLabel, "-o", "name")
		if err == nil && name == "" {
			err = errors.New("there is none")
		}
		return err
	})
}

func (w *world) startManager(flags ...string) *lab.Manager {
	w.Helper()
	started, err := w.lab.StartInstance(w.Context(), lab.Instance{Binary: w.program()}, append([]string{
		"--runs-in=jobs", "--runs-bind-address=127.0.0.1:0", "--runs-address=127.0.0.1", "--run-image=processes",
		"--run-cpu=100m", "--run-memory=256Mi",
		"--leader-elect-lease-duration=20s", "--leader-elect-renew-deadline=8s",
		"--leader-elect-retry-period=2s", "--cluster-id=demo",
		// the tests do not expect its Job
		"--shutdown-grace=5s", "--interrupt-grace=10s", "--max-concurrent-runs=4", "--module-dir=" + w.copied,
		"--inventory-interval=0",
	}, flags...)...)
	w.must(err)
	w.leads = started
	w.Cleanup(func() { w.check(w.leads.Stop(stopTimeout)) })
	return started
}

// watch records each Job and its Secret.
func (w *world) watch() {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			var found batchv1.JobList
			var secrets corev1.SecretList
			_ = w.client.List(ctx, &found, client.InNamespace(lab.Namespace))
			_ = w.client.List(ctx, &secrets, client.InNamespace(lab.Namespace),
				client.MatchingLabels{component: "machine-run"})
			w.seen.add(found.Items, secrets.Items)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	w.Cleanup(func() {
		cancel()
		watching.Wait()
	})
}

// create creates a MachineSet from the example.
func (w *world) create(name string, replicas int32, credentials string) {
	w.Helper()
	content, err := os.ReadFile(w.lab.Path("modules/kubemark/examples/machineset.yaml"))
	w.must(err)
	set := &machinev1beta1.MachineSet{}
	w.must(yaml.UnmarshalStrict(content, set))
	set.Name, set.Spec.Replicas = name, &replicas
	for _, labels := range []map[string]string{set.Spec.Selector.MatchLabels, set.Spec.Template.Labels} {
		labels["machine.openshift.io/cluster-api-machineset"] = name
	}
	fields := map[string]any{}
	w.must(json.Unmarshal(set.Spec.Template.Spec.ProviderSpec.Value.Raw, &fields))
	fields["credentialsSecret"] = map[string]any{"name": credentials}
	chaos.Quicken(fields)
	raw, err := json.Marshal(fields)
	w.must(err)
	set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	w.must(w.client.Create(w.Context(), set))
}

func (w *world) scale(name string, replicas int) {
	w.Helper()
	_, err := w.lab.Kubectl(w.Context(), "scale", "machineset", name, fmt.Sprintf("--replicas=%d", replicas))
	w.must(err)
}

// patch changes the providerSpec of all Machines.
func (w *world) patch(set string, change map[string]any) {
	w.Helper()
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"providerSpec": map[string]any{"value": change}}})
	w.must(err)
	var machines machinev1beta1.MachineList
	w.must(w.client.List(w.Context(), &machines, client.InNamespace(lab.Namespace),
		client.MatchingLabels{"machine.openshift.io/cluster-api-machineset": set}))
	for i := range machines.Items {
		w.must(w.client.Patch(w.Context(), &machines.Items[i], client.RawPatch(types.MergePatchType, raw)))
	}
}

// proxyCredentials creates credentials that use the proxy, and returns the Secret's name.
func (w *world) proxyCredentials() string {
	w.Helper()
	own := &corev1.Secret{}
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: lab.Namespace, Name: credentials}, own))
	through := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: lab.Namespace, Name: "through-the-proxy", Labels: map[string]string{references.Label: "true"},
		},
		Data: map[string][]byte{
			"server": []byte(w.proxy.Address()), "ca.crt": w.proxy.Authority(), "token": own.Data["token"],
		},
	}
	w.must(client.IgnoreAlreadyExists(w.client.Create(w.Context(), through)))
	return through.Name
}

// settled returns a check that count Machines exist, all Running with a Node, and that no run is in progress.
func (w *world) settled(count int) func(context.Context) error {
	return func(ctx context.Context) error {
		var machines machinev1beta1.MachineList
		var secrets corev1.SecretList
		if err := errors.Join(
			w.client.List(ctx, &machines, client.InNamespace(lab.Namespace)),
			w.client.List(ctx, &secrets, client.InNamespace(lab.Namespace), client.HasLabels{observe.RoleLabel}),
		); err != nil {
			return err
		}
		var open []string
		for _, machine := range machines.Items {
			if machine.Status.Phase == nil || *machine.Status.Phase != machinev1beta1.PhaseRunning ||
				machine.Status.NodeRef == nil {
				open = append(open, machine.Name)
			}
		}
		for _, secret := range secrets.Items {
			if secret.Annotations[observe.LockAnnotation]+secret.Annotations[observe.IntentAnnotation] != "" {
				open = append(open, secret.Name)
			}
		}
		if len(machines.Items) != count || len(open) > 0 {
			return fmt.Errorf("%d Machines, not settled: %v", len(machines.Items), open)
		}
		return nil
	}
}

// labelled returns a check that count Nodes have a label.
func (w *world) labelled(label, value string, count int) func(context.Context) error {
	return func(ctx context.Context) error {
		var found corev1.NodeList
		err := w.client.List(ctx, &found, client.MatchingLabels{label: value})
		if err == nil && len(found.Items) != count {
			err = fmt.Errorf("%d Nodes have it", len(found.Items))
		}
		return err
	}
}

// nothingLeft checks that no objects of runs are left.
func (w *world) nothingLeft(ctx context.Context) error {
	left, err := w.lab.Kubectl(ctx, "get", "jobs,pods,secrets", "-l", component+"=machine-run", "-o", "name")
	if err == nil && left != "" {
		err = errors.New(left)
	}
	return err
}

// inManager returns the engines' files in a manager's work folder.
func (w *world) inManager(manager *lab.Manager) []string {
	w.Helper()
	var found []string
	w.must(filepath.WalkDir(manager.WorkDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (entry.Name() == ".terraform" || strings.HasSuffix(path, ".tfvars.json")) {
			found = append(found, path)
		}
		return err
	}))
	return found
}

func (w *world) reached(held *apiproxy.Hold) {
	w.Helper()
	select {
	case <-held.Reached:
	case <-time.After(patience):
		w.Fatal("no request came to the proxy")
	}
}

func (w *world) podOf(job *batchv1.Job) *corev1.Pod {
	w.Helper()
	var pods corev1.PodList
	w.must(w.client.List(w.Context(), &pods, client.InNamespace(lab.Namespace),
		client.MatchingLabels{"machine-iac.io/run": job.Labels["machine-iac.io/run"]}))
	if len(pods.Items) != 1 {
		w.Fatalf("Job %s has %d Pods", job.Name, len(pods.Items))
	}
	return &pods.Items[0]
}

// signal signals the first process of a Job's Pod, identified only by its parent, the agent.
func (w *world) signal(job *batchv1.Job, signal syscall.Signal) {
	w.Helper()
	uid := string(w.podOf(job).UID)
	processes, err := filepath.Glob("/proc/[0-9]*")
	w.must(err)
	for _, process := range processes {
		mounts, err := os.ReadFile(filepath.Join(process, "mountinfo"))
		status, statusErr := os.ReadFile(filepath.Join(process, "status"))
		if err != nil || statusErr != nil || !strings.Contains(string(mounts), uid) {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if ids, ok := strings.CutPrefix(line, "NSpid:"); ok && strings.HasSuffix(strings.TrimSpace(ids), "\t1") {
				var pid int
				_, err := fmt.Sscanf(filepath.Base(process), "%d", &pid)
				w.must(err)
				w.must(syscall.Kill(pid, signal))
				return
			}
		}
	}
	w.Fatalf("the process of Job %s is not found", job.Name)
}

func (w *world) until(what string, check func(context.Context) error) {
	w.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for err := check(ctx); err != nil; {
		if w.leads != nil && !w.leads.Running() {
			w.Fatalf("waiting until %s: the manager has ended: %s; its log is %s", what, w.leads.State(), w.leads.Log)
		}
		select {
		case <-ctx.Done():
			w.Fatalf("waiting until %s: %v", what, err)
		case <-time.After(500 * time.Millisecond):
		}
		if now := check(ctx); now == nil || ctx.Err() == nil { // ignore a check that the deadline cut off
			err = now
		}
	}
	w.Logf("%6.1f s until %s", time.Since(begun).Seconds(), what)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Error(err)
	}
}
