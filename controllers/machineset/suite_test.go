package machineset_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestMachineSetAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "MachineSet controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.CustomNoUpgrade) })

// startManager runs the controller on one namespace until stop is called; the test's end calls it too.
func startManager(namespace string, changes ...func(*machineset.Options, manager.Manager)) (stop func()) {
	GinkgoHelper()
	mgr := suite.NewManager(plane, namespace)
	var options machineset.Options
	for _, change := range changes {
		change(&options, mgr)
	}
	Expect(machineset.SetupWithManager(context.Background(), mgr, options)).To(Succeed())
	return suite.Run(mgr)
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	return suite.Namespace(ctx, plane)
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	Expect(plane.Create(ctx, objects...)).To(Succeed())
}
