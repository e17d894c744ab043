//go:build e2e_jobs

package e2ejobs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
	// kueueCertificate is the Secret with the certificate of Kueue's webhooks. Kueue's Pod mounts it as a volume.
	kueueCertificate = "kueue-webhook-server-cert"
	// queue is the example's LocalQueue and its ClusterQueue.
	queue = "runs"
)

// kueueTree installs Kueue by its own manifests, without its Pod and the API that only a Pod could serve.
const kueueTree = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%q]
patches:
  - patch: |-
      $patch: delete
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: kueue-controller-manager, namespace: kueue-system}
  - patch: |-
      $patch: delete
      apiVersion: apiregistration.k8s.io/v1
      kind: APIService
      metadata: {name: v1beta1.visibility.kueue.x-k8s.io}
`

const kueueConfiguration = `apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: %q}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %s, certDir: %q}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
integrations: {frameworks: [batch/job]}
featureGates: {VisibilityOnDemand: false}
`

// startKueue installs Kueue with the example's queue, and starts its controller as a process with its service account's
// rights.
func (w *world) startKueue() {
	w.Helper()
	dir := filepath.Join(w.dir, "kueue")
	certificates := filepath.Join(dir, "certificates")
	w.must(os.MkdirAll(certificates, 0o700))
	there, err := filepath.EvalSymlinks(w.lab.Path("bin", "kueue-config"))
	w.must(err)
	relative, err := filepath.Rel(dir, filepath.Join(there, "default"))
	w.must(err)
	w.write(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, kueueTree, relative))
	w.must(w.lab.ApplyTree(w.Context(), dir))
	health, webhooks := w.freeAddress(), w.freeAddress()
	var service corev1.Service
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: kueueNamespace, Name: kueueService}, &service))
	w.lab.Cluster.RouteService(net.JoinHostPort(service.Spec.ClusterIP, "443"), webhooks)
	_, port, err := net.SplitHostPort(webhooks)
	w.must(err)
	settings, kubeconfig := filepath.Join(dir, "configuration.yaml"), filepath.Join(dir, "kubeconfig")
	w.write(settings, fmt.Appendf(nil, kueueConfiguration, health, port, certificates))
	w.must(w.lab.Cluster.ServiceAccountKubeconfig(w.Context(), kueueNamespace, "kueue-controller-manager", kubeconfig))
	ended := w.background("kueue",
		exec.Command(w.lab.Path("bin", "kueue"), "--config="+settings, "--kubeconfig="+kubeconfig, "--zap-log-level=2"))
	w.until("Kueue has made the certificate of its webhooks",
		func(ctx context.Context) error { return w.mount(ctx, certificates) })
	w.until("Kueue is ready", func(ctx context.Context) error { return ready(ctx, health, ended) })
	w.until("there is a queue", func(ctx context.Context) error {
		_, err := w.lab.Kubectl(ctx, "apply", "-f", w.lab.Path("install", "jobs", "queue-example.yaml"))
		return err
	})
}

// background starts a program that is killed when the test ends. The channel is closed when it ends.
func (w *world) background(name string, command *exec.Cmd) <-chan struct{} {
	w.Helper()
	logs, err := os.Create(filepath.Join(w.dir, "logs", name+".log"))
	w.must(err)
	command.Stdout, command.Stderr = logs, logs
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w.must(command.Start())
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // it is killed
		_ = logs.Close()
		close(ended)
	}()
	w.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended, which tests that wait for it report
		<-ended
	})
	return ended
}

// mount writes Kueue's certificate to the path of the Pod's volume. The certificate comes last, as Kueue waits for its
// file.
func (w *world) mount(ctx context.Context, dir string) error {
	var secret corev1.Secret
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: kueueNamespace, Name: kueueCertificate}, &secret); err !=
		nil {
		return err
	}
	if len(secret.Data[corev1.TLSCertKey]) == 0 {
		return errors.New("the Secret is empty")
	}
	for _, key := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if err := os.WriteFile(filepath.Join(dir, key), secret.Data[key], 0o600); err != nil {
			return err
		}
	}
	return nil
}

func ready(ctx context.Context, health string, ended <-chan struct{}) error {
	select {
	case <-ended:
		return errors.New("it has ended; see its log")
	default:
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func (w *world) write(file string, content []byte) {
	w.Helper()
	w.must(os.WriteFile(file, content, 0o600))
}

func (w *world) freeAddress() string {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	defer listener.Close()
	return listener.Addr().String()
}

// stopQueue sets the ClusterQueue's stop policy: Hold keeps admitted runs, HoldAndDrain evicts them, None resumes.
func (w *world) stopQueue(policy string) {
	w.Helper()
	_, err := w.lab.Kubectl(w.Context(), "patch", "clusterqueue", queue, "--type=merge",
		"-p", fmt.Sprintf(`{"spec":{"stopPolicy":%q}}`, policy))
	w.must(err)
}

// admitted tracks admitted Jobs that have not ended, with a watch from the first Job on.
type admitted struct {
	mu   sync.Mutex
	now  map[types.UID]string
	most []string
}

// watchAdmitted tracks Jobs that are not suspended, until the test ends.
func (w *world) watchAdmitted() *admitted {
	w.Helper()
	config, err := w.lab.Cluster.AdminConfig()
	w.must(err)
	clients, err := kubernetes.NewForConfig(config)
	w.must(err)
	watching, err := clients.BatchV1().Jobs(lab.Namespace).Watch(w.Context(), metav1.ListOptions{})
	w.must(err)
	w.Cleanup(watching.Stop)
	a := &admitted{now: map[types.UID]string{}}
	go func() {
		for event := range watching.ResultChan() {
			if job, ok := event.Object.(*batchv1.Job); ok {
				a.note(event.Type, job)
			}
		}
	}()
	return a
}

func (a *admitted) note(what watch.EventType, job *batchv1.Job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	over := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
	delete(a.now, job.UID)
	if what != watch.Deleted && !over && job.Spec.Suspend != nil && !*job.Spec.Suspend {
		a.now[job.UID] = job.Name
	}
	if len(a.now) > len(a.most) {
		a.most = slices.Sorted(maps.Values(a.now))
	}
}

// atMost returns the largest set of Jobs that were admitted at the same time.
func (a *admitted) atMost() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.most)
}
