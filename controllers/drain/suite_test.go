package drain_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/drain"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestDrainAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Drain controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.CustomNoUpgrade) })

// startManager runs the controller on one namespace until stop is called; the test's end calls it
// too. Passes and pauses are short.
func startManager(namespace string, changes ...func(*drain.Options)) (stop func()) {
	GinkgoHelper()
	mgr := suite.NewManager(plane, namespace)
	options := drain.Options{
		Clientset: clientset(), AttemptTimeout: time.Second, RetryBase: 100 * time.Millisecond, RetryMax: 500 * time.Millisecond,
	}
	for _, change := range changes {
		change(&options)
	}
	Expect(drain.SetupWithManager(mgr, options)).To(Succeed())
	return suite.Run(mgr)
}

func clientset() kubernetes.Interface {
	GinkgoHelper()
	out, err := kubernetes.NewForConfig(plane.Config)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	Expect(plane.Create(ctx, objects...)).To(Succeed())
}
