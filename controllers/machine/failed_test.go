package machine_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("A Machine that goes Failed", func() {
	var (
		namespace string
		actuator  *condemning
		subject   *machinev1beta1.Machine
	)
	BeforeEach(func(ctx SpecContext) {
		var err error
		namespace, err = plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		actuator = &condemning{}
		subject = builder.In(namespace, builder.Machine(builder.WithFinalizer(), builder.WithPhase("Running"),
			builder.WithProviderID("fake://1"), builder.WithInternalIPs("10.0.0.1"), func(m *machinev1beta1.Machine) {
				m.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"instanceId":"i-1","instanceState":"running","vmState":"Succeeded"}`)}
			}))
		create(ctx, subject)
	})
	// failed compares what the Machine says, and that nothing is asked about it any more.
	failed := func(ctx context.Context, p *passes, reason, message types.GomegaMatcher) {
		GinkgoHelper()
		machine := fresh(ctx, subject)
		Expect(machine.Status).To(And(havePhase("Failed"),
			MatchFields(IgnoreExtras, Fields{"ErrorReason": reason, "ErrorMessage": message})))
		Expect(machine.Annotations).To(HaveKeyWithValue("machine.openshift.io/instance-state", "Unknown"))
		Expect(string(machine.Status.ProviderStatus.Raw)).To(MatchJSON(`{"instanceId":"i-1","instanceState":"Unknown","vmState":"Unknown"}`))
		calls := len(actuator.Calls())
		wrote, result := p.next(ctx)
		Expect(wrote).To(BeEmpty())
		Expect(result.RequeueAfter).To(BeZero())
		Expect(actuator.Calls()).To(HaveLen(calls))
	}

	It("because its instance is gone, says Unknown of the instance's state", func(ctx SpecContext) {
		p := byHand(subject, &actuator.Actuator, plane.Client)
		p.next(ctx)
		failed(ctx, p, BeNil(), HaveValue(Equal("can't find created instance")))
	})

	DescribeTable("because the actuator says so in memory, says the error's words",
		func(ctx SpecContext, verb fake.Verb, err error, wantReason, wantMessage types.GomegaMatcher) {
			Expect(actuator.Create(ctx, subject.DeepCopy())).To(Succeed())
			actuator.verb = verb
			actuator.Fail(verb, err)
			p := byHand(subject, actuator, plane.Client)
			_, _, passErr := p.try(ctx)
			if verb == fake.Exists {
				Expect(passErr).To(MatchError(err))
			} else {
				Expect(passErr).NotTo(HaveOccurred())
			}
			failed(ctx, p, wantReason, wantMessage)
		},
		Entry("from Exists", fake.Exists, errPlain, BeNil(), HaveValue(Equal("connection refused"))),
		Entry("from Update", fake.Update, errPlain, BeNil(), HaveValue(Equal("connection refused"))),
		Entry("from Update, with a reason", fake.Update, errInvalid,
			HaveValue(Equal(machinev1beta1.InvalidConfigurationMachineError)), HaveValue(Equal("cpu: a number is required"))),
		Entry("from Update, although it bids to wait", fake.Update, errProgress, BeNil(), HaveValue(Equal(errProgress.Error()))),
	)
})

// condemning is an actuator that sets the phase to Failed at an error of one verb.
type condemning struct {
	fake.Actuator
	verb fake.Verb
}

func (a *condemning) condemn(verb fake.Verb, machine *machinev1beta1.Machine, err error) {
	if err != nil && verb == a.verb {
		machine.Status.Phase = ptr.To(machinev1beta1.PhaseFailed)
	}
}

func (a *condemning) Exists(ctx context.Context, machine *machinev1beta1.Machine) (bool, error) {
	exists, err := a.Actuator.Exists(ctx, machine)
	a.condemn(fake.Exists, machine, err)
	return exists, err
}

func (a *condemning) Update(ctx context.Context, machine *machinev1beta1.Machine) error {
	err := a.Actuator.Update(ctx, machine)
	a.condemn(fake.Update, machine, err)
	return err
}
