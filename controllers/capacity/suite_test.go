package capacity_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/capacity"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestCapacityAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Capacity controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.CustomNoUpgrade) })

// world is a namespace with the controller on it.
type world struct {
	namespace string
	estimator *fake.Actuator
	events    chan string
}

// asked returns how often the size was asked for.
func (w *world) asked() int { return len(w.estimator.Calls(fake.Capacity)) }

// start runs the controller on a namespace of its own until the test ends.
func start(ctx SpecContext, types map[string]actuators.Capacity) *world {
	GinkgoHelper()
	recorder := events.NewFakeRecorder(100)
	w := &world{namespace: suite.Namespace(ctx, plane), estimator: &fake.Actuator{Types: types}, events: recorder.Events}
	mgr := suite.NewManager(plane, w.namespace)
	Expect(capacity.SetupWithManager(mgr, capacity.Options{Common: pipeline.Common{Recorder: recorder}, Estimator: w.estimator})).To(Succeed())
	suite.Run(mgr)
	return w
}
