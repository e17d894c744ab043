package nodelink_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/machine-iac/machine-iac-operator/controllers/nodelink"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

var plane *controlplane.ControlPlane

func TestNodeLinkAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "NodeLink controller")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(500 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	var err error
	plane, err = controlplane.Start(controlplane.Default)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(plane.Stop()).To(Succeed()) })
})

// startManager runs the controller until stop is called; the test's end calls it too.
func startManager() (stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := manager.New(plane.Config, manager.Options{
		Scheme:     plane.Scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Logger:     GinkgoLogr,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(nodelink.SetupWithManager(ctx, mgr, nodelink.Options{})).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		Eventually(ended).WithTimeout(40 * time.Second).Should(Receive(BeNil()))
	}
	DeferCleanup(stop)
	return stop
}
