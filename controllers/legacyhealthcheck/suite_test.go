package legacyhealthcheck

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestLegacyHealthChecksAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Legacyhealthcheck controller")
}

var _ = BeforeSuite(func() {
	plane = suite.Start(controlplane.Default, func(server *envtest.Environment) {
		server.CRDInstallOptions.Paths = append(server.CRDInstallOptions.Paths, "../../install/legacy/machinehealthchecks.yaml",
			"../../install/legacy/clusters.yaml")
	})
})

// world is a namespace with the controller on it.
type world struct {
	namespace string
	events    chan string
}

// start runs the controller on a namespace of its own until the test ends. The ConfigMap has the
// text of conditions, if there is any.
func start(ctx context.Context, conditions string) *world {
	GinkgoHelper()
	recorder := events.NewFakeRecorder(100)
	w := &world{namespace: suite.Namespace(ctx, plane), events: recorder.Events}
	if conditions != "" {
		Expect(plane.Client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "node-unhealthy-conditions"},
			Data:       map[string]string{"conditions": conditions},
		})).To(Succeed())
	}
	mgr := suite.NewManager(plane, w.namespace)
	Expect(SetupWithManager(mgr, Options{Common: pipeline.Common{Recorder: recorder}})).To(Succeed())
	suite.Run(mgr)
	return w
}

// create creates a legacy MachineHealthCheck "workers".
func (w *world) create(ctx context.Context, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	legacy := ofKind(Kind)
	legacy.SetNamespace(w.namespace)
	legacy.SetName("workers")
	legacy.Object["spec"] = spec
	Expect(plane.Client.Create(ctx, legacy)).To(Succeed())
	return legacy
}

// converted reads the converted MachineHealthCheck.
func (w *world) converted(ctx context.Context) (*machinev1beta1.MachineHealthCheck, error) {
	check := &machinev1beta1.MachineHealthCheck{}
	err := plane.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "workers"}, check)
	return check, err
}

// unhealthy returns a function that reads what the converted MachineHealthCheck calls unhealthy.
func (w *world) unhealthy(ctx context.Context) func() ([]string, error) {
	return func() ([]string, error) {
		check, err := w.converted(ctx)
		var all []string
		for _, one := range check.Spec.UnhealthyConditions {
			all = append(all, string(one.Type)+" "+string(one.Status)+" "+one.Timeout.Duration.String())
		}
		return all, err
	}
}
