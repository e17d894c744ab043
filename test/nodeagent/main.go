// Command nodeagent is a node whose Pods are processes of this machine, for tests: virtual-kubelet does what a kubelet does with the API server, and each
// Pod is one program that runs in namespaces of its own, where it is the first process and has its volumes at their paths. There are no images: programs
// are found in the folders of PATH. It needs to run as root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
)

const (
	// label is on the node, for Pods that are to run there.
	label       = "machine-iac.io/node-agent"
	workers     = 8
	pingEvery   = 5 * time.Second
	statusEvery = 20 * time.Second
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == insideCommand {
		fmt.Fprintln(os.Stderr, "nodeagent:", inside(os.Args[2:])) // it returns only where it fails
		os.Exit(126)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "nodeagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	name := flag.String("node", "processes", "Name of the node.")
	kubeconfig := flag.String("kubeconfig", "", "Path of the kubeconfig file.")
	dir := flag.String("dir", "", "Folder for volumes and logs.")
	flag.Parse()
	if *kubeconfig == "" || *dir == "" {
		return errors.New("set --kubeconfig and --dir")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 100, 200
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	own := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", *name).String()
	}))
	all := informers.NewSharedInformerFactory(clientset, 0)
	recorder := record.NewBroadcaster()
	recorder.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	pods, err := node.NewPodController(node.PodControllerConfig{
		PodClient: clientset.CoreV1(), PodInformer: own.Core().V1().Pods(), Provider: newProcesses(clientset, *dir),
		EventRecorder:     recorder.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "nodeagent"}),
		ConfigMapInformer: all.Core().V1().ConfigMaps(), SecretInformer: all.Core().V1().Secrets(), ServiceInformer: all.Core().V1().Services(),
	})
	if err != nil {
		return err
	}
	nodes, err := node.NewNodeController(node.NaiveNodeProvider{}, describe(*name), clientset.CoreV1().Nodes(),
		node.WithNodePingInterval(pingEvery), node.WithNodeStatusUpdateInterval(statusEvery),
		node.WithNodeEnableLeaseV1(clientset.CoordinationV1().Leases(corev1.NamespaceNodeLease), node.DefaultLeaseDuration))
	if err != nil {
		return err
	}
	own.Start(ctx.Done())
	all.Start(ctx.Done())
	ended := make(chan error, 2)
	go func() { ended <- pods.Run(ctx, workers) }()
	go func() { ended <- nodes.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// describe returns the Node.
func describe(name string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true", corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "AgentReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.0-nodeagent", OperatingSystem: "linux"},
		},
	}
}
