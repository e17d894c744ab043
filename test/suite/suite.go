// Package suite sets behaviour tests up: a real API server, a manager, and a namespace per test. Its functions fail the
// running test, so call them from one.
package suite

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
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

// Start starts an API server for the suite, and sets the default timeouts of assertions. Call it in BeforeSuite.
func Start(features controlplane.FeatureSet, options ...controlplane.Option) *controlplane.ControlPlane {
	GinkgoHelper()
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	SetDefaultConsistentlyDuration(Watch(500 * time.Millisecond))
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	plane, err := controlplane.Start(features, options...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(plane.Stop()).To(Succeed()) })
	return plane
}

// Watch returns the duration for Consistently: d, or a fifth of it with -short.
func Watch(d time.Duration) time.Duration {
	if testing.Short() {
		return d / 5
	}
	return d
}

func Namespace(ctx context.Context, plane *controlplane.ControlPlane) string {
	GinkgoHelper()
	namespace, err := plane.Namespace(ctx)
	Expect(err).NotTo(HaveOccurred())
	return namespace
}

// NewManager creates a manager whose cache is limited to one namespace, unless empty. It serves the API server's
// webhooks.
func NewManager(plane *controlplane.ControlPlane, namespace string) manager.Manager {
	GinkgoHelper()
	options := manager.Options{
		Scheme:     plane.Scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		NewCache:   newCache,
		Logger:     GinkgoLogr.WithValues("namespace", namespace),
		// Share one, so that managers do not repeat the discovery.
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return plane.Client.RESTMapper(), nil
		},
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

// Run runs a manager until stop is called or the test ends.
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
		Eventually(ended).WithTimeout(stopTimeout).WithPolling(time.Millisecond).Should(Receive(BeNil()))
	}
	DeferCleanup(stop)
	return stop
}
