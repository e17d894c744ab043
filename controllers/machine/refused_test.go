package machine_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("A Machine whose updates are refused", func() {
	It("says so in an event", func(ctx SpecContext) {
		namespace, err := plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		subject := builder.In(namespace, builder.Machine(builder.WithFinalizer()))
		create(ctx, subject)
		recorder := events.NewFakeRecorder(10)
		refusing := &notingClient{Client: plane.Client,
			failStatus: apierrors.NewForbidden(machinev1beta1.Resource("machines"), subject.Name, errors.New("policy frozen denies it"))}
		controller, err := machine.New(machine.Options{
			Common: pipeline.Common{Client: refusing, Recorder: recorder}, Actuator: &fake.Actuator{}})
		Expect(err).NotTo(HaveOccurred())
		for range 3 { // takes spec.authoritativeAPI over first
			_, err = controller.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(subject)})
			Expect(err).To(MatchError(ContainSubstring("policy frozen denies it")))
		}
		Expect(recorder.Events).To(Receive(And(HavePrefix("Warning WriteRefused "), ContainSubstring("policy frozen denies it"))))
	})
})
