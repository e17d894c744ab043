//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	spotSet = "spot"
	// spotVersion is the providerSpec version of the module with interruptible instances.
	spotVersion = "spot.machine-iac.io/v1"
	// handlerName is the name of the termination handler's DaemonSet, namespace and MachineHealthCheck.
	handlerName        = "machine-api-termination-handler"
	interruptibleLabel = "machine.openshift.io/interruptible-instance"
	terminating        = corev1.NodeConditionType("Terminating")
)

// spotModule copies the module kubemark as one with interruptible instances, and returns the manager's flag for it.
func (w *world) spotModule() string {
	GinkgoHelper()
	folder := filepath.Join(w.dir, "spot", "kubemark-spot")
	Expect(os.CopyFS(folder, os.DirFS(w.lab.Path("modules", "kubemark")))).To(Succeed())
	change := func(file string, change func(string) string) {
		file = filepath.Join(folder, file)
		before, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		after := change(string(before))
		Expect(after).NotTo(Equal(string(before)))
		Expect(os.WriteFile(file, []byte(after), 0o600)).To(Succeed())
	}
	change("module.yaml", func(before string) string {
		return strings.NewReplacer("name: kubemark\n", "name: kubemark-spot\n",
			"kubemarkproviderconfig.openshift.io/v1alpha1", spotVersion).Replace(before)
	})
	change("outputs.tf", func(before string) string {
		return before + `
output "interruptible" {
  description = "Whether the instance may be taken away."
  value       = true

  depends_on = [kubectl_manifest.this]
}
`
	})
	return "--module-dir=" + filepath.Dir(folder)
}

// spotMachines returns a MachineSet with one interruptible Machine.
func (w *world) spotMachines() *machinev1beta1.MachineSet {
	GinkgoHelper()
	set := renamed(w.machineSet(1), spotSet)
	changeSpec(&set.Spec.Template.Spec, func(fields map[string]any) { fields["apiVersion"] = spotVersion })
	return set
}

func aSpotInstance() {
	var seen *timeline
	var doomed, other string // the spot Machine, and an ordinary one
	metadata := &spotMetadata{}
	var server *httptest.Server
	var handler *handlerProcess

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, 1)
		other = w.names(ctx)[0]
		w.pod.restart(ctx, w.spotModule())
		DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
		tree := w.lab.Path("install", "termination-handler-namespace")
		w.kubectl(ctx, "apply", "--namespace=", "-k", tree)
		DeferCleanup(func(ctx SpecContext) { w.kubectl(ctx, "delete", "--namespace=", "--wait=false", "-k", tree) })
		server = httptest.NewServer(metadata)
		DeferCleanup(server.Close)
		DeferCleanup(func() error { return handler.stop() })
		seen = w.timeline(ctx)
		w.create(ctx, w.spotMachines())
		DeferCleanup(func(ctx SpecContext) {
			w.kubectl(ctx, "delete", "machineset", spotSet)
			w.settles(ctx, 1)
		})
		w.settles(ctx, 2)
	})

	It("is labelled, and the termination handler has a Pod on its Node and on no other", func(ctx SpecContext) {
		doomed = w.handled(ctx, "")
		Expect(doomed).NotTo(Equal(other))
		Expect(w.get(ctx, doomed).Labels).To(HaveKeyWithValue(interruptibleLabel, ""))
		Expect(w.get(ctx, doomed).Spec.Labels).To(HaveKeyWithValue(interruptibleLabel, ""))
		Expect(w.get(ctx, other).Labels).NotTo(HaveKey(interruptibleLabel))
	})

	It("is polled by a handler that may mark its own Node, and no other", func(ctx SpecContext) {
		kubeconfig := w.kubeletKubeconfig(doomed)
		_, err := w.lab.Kubectl(ctx, "--kubeconfig", kubeconfig, "patch", "node", other,
			"--subresource=status", "--patch", "{}")
		Expect(err).To(MatchError(ContainSubstring("Forbidden")))
		handler = w.startHandler(ctx, doomed, kubeconfig, server.URL)
		Eventually(ctx, metadata.count).WithTimeout(patience).Should(BeNumerically(">=", 2))
		Expect(conditionsOf(w.node(ctx, doomed))).NotTo(ContainElement(terminating))
	})

	It("is replaced when the cloud announces its end", func(ctx SpecContext) {
		machine := w.get(ctx, doomed)
		hook := `{"spec":{"lifecycleHooks":{"preDrain":[{"name":"example.com/LookAtIt","owner":"e2e"}]}}}`
		w.kubectl(ctx, "patch", "machine", doomed, "--type=merge", "--patch", hook)
		metadata.announce(time.Now().Add(2 * time.Minute))
		until(ctx, patience, "the Node is marked, and its Machine is deleted", func(ctx context.Context) error {
			if marks := conditionsOf(w.node(ctx, doomed)); !slices.Contains(marks, terminating) {
				return fmt.Errorf("the Node has the conditions %v", marks)
			}
			if w.get(ctx, doomed).DeletionTimestamp == nil {
				return errors.New("the Machine stays")
			}
			return nil
		})
		w.expectEvent(ctx, machine, "MachineDeleted", "")
		w.kubectl(ctx, "patch", "machine", doomed, "--type=merge", "--patch", `{"spec":{"lifecycleHooks":null}}`)
		seen.happens(ctx, drained(doomed), destroyed(doomed), nodeGone(doomed), machineGone(doomed))
		w.settles(ctx, 2)
		Expect(w.names(ctx)).To(ContainElement(other), "another Machine was replaced")
		w.handled(ctx, doomed) // and so is its replacement
	})

	It("has a handler that goes on until it is stopped", func(SpecContext) {
		Expect(handler.ended).NotTo(BeClosed())
		Expect(handler.stop()).To(Succeed())
		log, err := os.ReadFile(handler.log)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).To(ContainSubstring("Marked the Node"))
	})
}

// conditionsOf returns the types of a Node's True conditions.
func conditionsOf(node *corev1.Node) (types []corev1.NodeConditionType) {
	for _, c := range node.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			types = append(types, c.Type)
		}
	}
	return types
}

// handlerPods returns the termination handler's Pods that are not being deleted.
func (w *world) handlerPods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := w.client.List(ctx, &pods, client.InNamespace(handlerName),
		client.MatchingLabels{"k8s-app": "termination-handler"})
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }), err
}

// handled waits until the termination handler has one Pod, on a spot Node other than former, and returns that Node's
// name.
func (w *world) handled(ctx context.Context, former string) (name string) {
	GinkgoHelper()
	until(ctx, patience, "the termination handler runs on the spot Node", func(ctx context.Context) error {
		pods, err := w.handlerPods(ctx)
		if err != nil {
			return err
		}
		if len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning || pods[0].Spec.NodeName == former {
			return fmt.Errorf("there are %d Pods: %s", len(pods), strings.Join(phasesOf(pods), ", "))
		}
		name = pods[0].Spec.NodeName
		return nil
	})
	Expect(w.node(ctx, name).Labels).To(HaveKeyWithValue(interruptibleLabel, ""))
	return name
}

func phasesOf(pods []corev1.Pod) (phases []string) {
	for _, pod := range pods {
		phases = append(phases, fmt.Sprintf("%s on %q", pod.Status.Phase, pod.Spec.NodeName))
	}
	return phases
}

// kubeletKubeconfig writes a kubeconfig with the identity of a Node's kubelet.
func (w *world) kubeletKubeconfig(node string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(w.lab.Cluster.AdminKubeconfig())
	Expect(err).NotTo(HaveOccurred())
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = "system:node:"+node, []string{"system:nodes", "system:authenticated"}
	}
	file := filepath.Join(w.dir, "kubelet-"+node+".kubeconfig")
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	return file
}

// handlerProcess is a termination handler that runs as a process, in place of its Pod.
type handlerProcess struct {
	process *os.Process
	log     string
	ended   chan struct{}
	err     error
}

// startHandler runs the command of the Pod on a Node, with a simulated AWS metadata service.
func (w *world) startHandler(ctx context.Context, node, kubeconfig, metadata string) *handlerProcess {
	GinkgoHelper()
	pods, err := w.handlerPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(pods).To(HaveLen(1))
	container := pods[0].Spec.Containers[0]
	binary := filepath.Base(container.Command[0])
	arguments := []string{"--cloud=aws", "--metadata-url=" + metadata}
	for _, argument := range container.Args {
		arguments = append(arguments, strings.ReplaceAll(argument, "$(NODE_NAME)", node))
	}
	h := &handlerProcess{log: filepath.Join(w.dir, "logs", binary+".log"), ended: make(chan struct{})}
	log, err := os.Create(h.log)
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	command := exec.Command(w.lab.Path("bin", binary), arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = []string{"KUBECONFIG=" + kubeconfig}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Expect(command.Start()).To(Succeed(), "run 'make build'")
	h.process = command.Process
	go func() {
		h.err = command.Wait()
		close(h.ended)
	}()
	return h
}

// stop stops the handler as a kubelet does, and returns an error unless it exits cleanly.
func (h *handlerProcess) stop() error {
	if h == nil {
		return nil // it did not start
	}
	if err := h.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-h.ended:
		return h.err
	case <-time.After(30 * time.Second): // a Pod's grace period
		return errors.Join(errors.New("the termination handler does not end"), h.process.Kill())
	}
}

// spotMetadata is version 2 of the instance metadata service of an AWS Spot instance.
type spotMetadata struct {
	mu    sync.Mutex
	end   time.Time
	polls int
}

func (m *spotMetadata) announce(end time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end = end
}

func (m *spotMetadata) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.polls
}

func (m *spotMetadata) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	const token, header = "a-token", "X-aws-ec2-metadata-token"
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case request.Method == http.MethodPut && request.URL.Path == "/latest/api/token":
		response.Header().Set(header+"-ttl-seconds", request.Header.Get(header+"-ttl-seconds"))
		fmt.Fprint(response, token)
	case request.Header.Get(header) != token:
		response.WriteHeader(http.StatusUnauthorized)
	case request.URL.Path == "/latest/meta-data/spot/termination-time" && !m.end.IsZero():
		fmt.Fprint(response, m.end.UTC().Format(time.RFC3339))
	default:
		m.polls++
		response.WriteHeader(http.StatusNotFound)
	}
}
