package cluster_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
)

func TestCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Development cluster")
}

const patience = 30 * time.Second

// binaries returns KUBEBUILDER_ASSETS if it has all binaries (tests of operators need only some), otherwise bin/.
func binaries() string {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if _, err := os.Stat(filepath.Join(assets, string(cluster.KWOK))); err == nil {
			return assets
		}
	}
	return filepath.Join("..", "..", "..", "bin")
}

var _ = Describe("A cluster", Ordered, func() {
	var (
		subject *cluster.Cluster
		client  kubernetes.Interface
	)

	open := func() *cluster.Cluster {
		opened, err := cluster.New(cluster.Options{
			Dir: filepath.Join(GinkgoT().TempDir(), "dev"), Bin: binaries(), PodDeleteDelay: time.Second,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(opened.Purge(ctx)).To(Succeed())
			Expect(opened.Dir()).NotTo(BeADirectory())
		})
		return opened
	}
	up := func(ctx context.Context) string {
		progress := &bytes.Buffer{}
		Expect(subject.Up(ctx, progress)).To(Succeed(), "when binaries are missing, build them with 'make tools'")
		return progress.String()
	}
	states := func(ctx context.Context) map[cluster.Component]cluster.ComponentState {
		components, err := subject.Status(ctx)
		Expect(err).NotTo(HaveOccurred())
		found := map[cluster.Component]cluster.ComponentState{}
		for _, component := range components {
			found[component.Component] = component.State
		}
		return found
	}
	pid := func(ctx context.Context, name cluster.Component) int {
		components, err := subject.Status(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, component := range components {
			if component.Component == name {
				return component.PID
			}
		}
		return 0
	}
	connect := func(c *cluster.Cluster) kubernetes.Interface {
		config, err := c.AdminConfig()
		Expect(err).NotTo(HaveOccurred())
		Expect(config.Host).To(Equal(c.Server()))
		connected, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		return connected
	}
	node := func(ctx context.Context, name string) func(Gomega) *corev1.Node {
		return func(g Gomega) *corev1.Node {
			found, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			return found
		}
	}
	beReady := WithTransform(func(found *corev1.Node) corev1.ConditionStatus {
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status
			}
		}
		return "missing"
	}, Equal(corev1.ConditionTrue))
	allRunning := HaveEach(cluster.StateRunning)

	BeforeAll(func() { subject = open() })

	It("comes up with every component ready", func(ctx context.Context) {
		Expect(up(ctx)).To(And(ContainSubstring("kube-apiserver"), ContainSubstring("started"),
			Not(ContainSubstring("already"))))
		Expect(states(ctx)).To(And(HaveLen(5), allRunning))
		client = connect(subject)
	})

	It("leaves alone what runs when it is brought up again", func(ctx context.Context) {
		before := pid(ctx, cluster.Etcd)
		Expect(up(ctx)).To(And(ContainSubstring("already running"), Not(ContainSubstring("started"))))
		Expect(pid(ctx, cluster.Etcd)).To(Equal(before))
	})

	It("plays the nodes that ask for it, and leaves them their addresses", func(ctx context.Context) {
		_, err := client.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}
		for name, annotations := range map[string]map[string]string{
			"fake": {"kwok.x-k8s.io/node": "fake"}, "other": nil,
		} {
			made := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
				Status:     corev1.NodeStatus{Addresses: addresses},
			}
			_, err := client.CoreV1().Nodes().Create(ctx, made, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		Eventually(node(ctx, "fake")).WithTimeout(patience).Should(beReady)
		Expect(node(ctx, "fake")(Default).Status.Addresses).To(Equal(addresses))
		Expect(node(ctx, "other")(Default)).NotTo(beReady)
	})

	It("turns a Node unhealthy for a while, and again", func(ctx context.Context) {
		made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "turns", Annotations: map[string]string{
			"kwok.x-k8s.io/node": "fake", "machine-iac.io/healthy-for": "3s", "machine-iac.io/unhealthy-for": "2s",
		}}}
		_, err := client.CoreV1().Nodes().Create(ctx, made, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		for range 2 {
			Eventually(node(ctx, "turns")).WithTimeout(patience).Should(beReady)
			Eventually(node(ctx, "turns")).WithTimeout(patience).ShouldNot(beReady)
		}
		Expect(client.CoreV1().Nodes().Delete(ctx, "turns", metav1.DeleteOptions{})).To(Succeed())
		Expect(node(ctx, "fake")(Default)).To(beReady, "another Node has turned unhealthy")
	})

	It("runs a Pod, and removes it some time after it was deleted", func(ctx context.Context) {
		pods := client.CoreV1().Pods("kept")
		made := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "worker"},
			Spec:       corev1.PodSpec{NodeName: "fake", Containers: []corev1.Container{{Name: "main", Image: "any"}}},
		}
		Eventually(func() error { // the default service account follows its namespace
			_, err := pods.Create(ctx, made, metav1.CreateOptions{})
			return err
		}).WithTimeout(patience).Should(Succeed())
		Eventually(func() (corev1.PodPhase, error) {
			found, err := pods.Get(ctx, "worker", metav1.GetOptions{})
			return found.Status.Phase, err
		}).WithTimeout(patience).Should(Equal(corev1.PodRunning))
		Expect(pods.Delete(ctx, "worker", metav1.DeleteOptions{})).To(Succeed())
		found, err := pods.Get(ctx, "worker", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred(), "a Pod that is being deleted must be seen for a while")
		Expect(found.DeletionTimestamp).NotTo(BeNil())
		Eventually(func() error {
			_, err := pods.Get(ctx, "worker", metav1.GetOptions{})
			return err
		}).WithTimeout(patience).Should(Satisfy(apierrors.IsNotFound))
	})

	It("places a Pod on a ready Node, and evicts it only when its budget allows", func(ctx context.Context) {
		labels := map[string]string{"app": "placed"}
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "placed"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			},
		}
		budgets := client.PolicyV1().PodDisruptionBudgets("kept")
		_, err := budgets.Create(ctx, budget, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		pods := client.CoreV1().Pods("kept")
		_, err = pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "placed", Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "any"}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (string, error) {
			found, err := pods.Get(ctx, "placed", metav1.GetOptions{})
			return found.Spec.NodeName, err
		}).WithTimeout(patience).Should(Equal("fake"), "the other Node is not ready")
		healthy := func() (int32, error) {
			found, err := budgets.Get(ctx, "placed", metav1.GetOptions{})
			return found.Status.CurrentHealthy, err
		}
		Eventually(healthy).WithTimeout(patience).Should(BeEquivalentTo(1))

		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "placed", Namespace: "kept"}}
		Expect(pods.EvictV1(ctx, eviction)).To(Satisfy(apierrors.IsTooManyRequests))
		Expect(budgets.Delete(ctx, "placed", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() error { return pods.EvictV1(ctx, eviction) }).WithTimeout(patience).Should(Succeed())
	})

	It("gives a service account its own rights and no more", func(ctx context.Context) {
		file := filepath.Join(GinkgoT().TempDir(), "operator.kubeconfig")
		Expect(subject.ServiceAccountKubeconfig(ctx, "kept", "operator", file)).To(
			MatchError(ContainSubstring("create it first")))
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}
		_, err := client.CoreV1().ServiceAccounts("kept").Create(ctx, account, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(subject.ServiceAccountKubeconfig(ctx, "kept", "operator", file)).To(Succeed())
		Expect(os.Stat(file)).To(HaveField("Mode()", os.FileMode(0o600)))

		config, err := clientcmd.BuildConfigFromFlags("", file)
		Expect(err).NotTo(HaveOccurred())
		operator, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		_, err = operator.CoreV1().Secrets("kept").List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
		Expect(err).To(
			MatchError(ContainSubstring(`User "system:serviceaccount:kept:operator" cannot list resource "secrets"`)))
	})

	It("stops and starts one component on its port", func(ctx context.Context) {
		server := subject.Server()
		Expect(subject.Stop(ctx, cluster.APIServer)).To(Succeed())
		Expect(states(ctx)).To(And(
			HaveKeyWithValue(cluster.APIServer, cluster.StateStopped),
			HaveKeyWithValue(cluster.ControllerManager, cluster.StateRunning),
			HaveKeyWithValue(cluster.KWOK, cluster.StateRunning),
		))
		Expect(subject.Start(ctx, cluster.APIServer)).To(Succeed())
		Expect(states(ctx)).To(allRunning)
		Expect(subject.Server()).To(Equal(server))
		Expect(node(ctx, "fake")(Default)).To(beReady)
	})

	It("comes back from a killed API server with all data", func(ctx context.Context) {
		server := subject.Server()
		Expect(syscall.Kill(pid(ctx, cluster.APIServer), syscall.SIGKILL)).To(Succeed())
		Eventually(func() map[cluster.Component]cluster.ComponentState { return states(ctx) }).WithTimeout(patience).
			Should(HaveKeyWithValue(cluster.APIServer, cluster.StateDead))
		Expect(up(ctx)).To(MatchRegexp(`kube-apiserver .* started`))
		Expect(subject.Server()).To(Equal(server))
		Expect(states(ctx)).To(allRunning)
		Expect(node(ctx, "fake")(Default)).To(beReady)
	})

	It("goes on from its data after it was down, on the same port", func(ctx context.Context) {
		server := subject.Server()
		Expect(subject.Down(ctx)).To(Succeed())
		Expect(states(ctx)).To(And(HaveLen(5), HaveEach(cluster.StateStopped)))
		up(ctx)
		Expect(subject.Server()).To(Equal(server))
		_, err := client.CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		renewed := time.Now()
		Eventually(func() (time.Time, error) {
			lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx,
				"fake", metav1.GetOptions{})
			if err != nil || lease.Spec.RenewTime == nil {
				return time.Time{}, err
			}
			return lease.Spec.RenewTime.Time, nil
		}).WithTimeout(patience).Should(BeTemporally(">", renewed.Add(-5*time.Second)),
			"KWOK must go on with the nodes at once")
		Expect(node(ctx, "fake")(Default)).To(beReady)
	})

	It("runs beside a second one", func(ctx context.Context) {
		second := open()
		Expect(second.Up(ctx, nil)).To(Succeed())
		Expect(second.Server()).NotTo(Equal(subject.Server()))
		_, err := connect(second).CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		Expect(second.Down(ctx)).To(Succeed())
		Expect(states(ctx)).To(allRunning)
	})
})
