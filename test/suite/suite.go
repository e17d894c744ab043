// Package suite is what behaviour tests with a real API server begin with: the server, a manager on it, and namespaces of their own.
// Its functions fail the running test, so they are called from one.
package suite

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// stopTimeout is longer than a manager takes to stop.
const stopTimeout = 40 * time.Second

// Start brings an API server up until the suite ends, and sets how patient assertions are. Call it in BeforeSuite.
func Start(features controlplane.FeatureSet, options ...controlplane.Option) *controlplane.ControlPlane {
	GinkgoHelper()
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(500 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	plane, err := controlplane.Start(features, options...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(plane.Stop()).To(Succeed()) })
	return plane
}

// Namespace makes a namespace for a test.
func Namespace(ctx context.Context, plane *controlplane.ControlPlane) string {
	GinkgoHelper()
	namespace, err := plane.Namespace(ctx)
	Expect(err).NotTo(HaveOccurred())
	return namespace
}

// NewManager makes a manager whose cache holds one namespace; all of them when namespace is empty. It serves the webhooks that the
// API server was started with.
func NewManager(plane *controlplane.ControlPlane, namespace string) manager.Manager {
	GinkgoHelper()
	options := manager.Options{
		Scheme:     plane.Scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Logger:     GinkgoLogr.WithValues("namespace", namespace),
	}
	if server := plane.WebhookServer(); server != nil {
		options.WebhookServer = server
	}
	if namespace != "" {
		options.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
	}
	mgr, err := manager.New(plane.Config, options)
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

// Run runs a manager until stop is called; the test's end calls it too.
func Run(mgr manager.Manager) (stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		Eventually(ended).WithTimeout(stopTimeout).Should(Receive(BeNil()))
	}
	DeferCleanup(stop)
	return stop
}
