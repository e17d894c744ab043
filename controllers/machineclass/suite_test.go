package machineclass

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestMachineClassesAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Machineclass controller")
}

var _ = BeforeSuite(func() {
	plane = suite.Start(controlplane.Default, func(server *envtest.Environment) {
		server.CRDInstallOptions.Paths = append(server.CRDInstallOptions.Paths, "../../install/gardener/crds/machine.sapcloud.io_machineclasses.yaml")
	})
})

// world is a namespace with the controller on it.
type world struct {
	namespace string
	estimator *fake.Actuator
	events    chan string
}

// start runs the controller on a namespace of its own until the test ends.
func start(ctx SpecContext) *world {
	GinkgoHelper()
	recorder := events.NewFakeRecorder(100)
	w := &world{
		namespace: suite.Namespace(ctx, plane),
		estimator: &fake.Actuator{Types: map[string]actuators.Capacity{"small": small, "big": big}}, events: recorder.Events,
	}
	mgr := suite.NewManager(plane, w.namespace)
	Expect(SetupWithManager(mgr, Options{Common: pipeline.Common{Recorder: recorder}, Estimator: w.estimator})).To(Succeed())
	suite.Run(mgr)
	return w
}
