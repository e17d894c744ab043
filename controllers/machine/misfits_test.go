package machine_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// misfit is a Machine that an admission webhook would have refused.
type misfit struct {
	change func(*machinev1beta1.Machine)
	// wantWarnings are in an event about it.
	wantWarnings []string
	// wantStatus is what it shows.
	wantStatus types.GomegaMatcher
	// held is set when its deletion waits until it is fixed.
	held bool
}

var _ = Describe("On a cluster without webhooks", func() {
	var (
		namespace string
		actuator  *fake.Actuator
		recorder  *events.FakeRecorder
		noting    *notingClient
	)
	BeforeEach(func(ctx SpecContext) {
		var err error
		namespace, err = plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		actuator, recorder = &fake.Actuator{}, events.NewFakeRecorder(1000)
		startManager(namespace, actuator, func(o *machine.Options, mgr manager.Manager) {
			noting = &notingClient{Client: mgr.GetClient()}
			o.Client, o.Recorder = noting, recorder
		})
	})
	// rests checks that nobody works on the Machine without a cause.
	rests := func() {
		GinkgoHelper()
		seen := -1
		Eventually(func() bool {
			earlier := seen
			seen = len(actuator.Calls()) + len(recorder.Events)
			return len(noting.taken()) == 0 && seen == earlier
		}).WithPolling(suite.Watch(500*time.Millisecond)).Should(BeTrue(), "calls, writes or events go on")
		Expect(len(recorder.Events)).To(BeNumerically("<=", 3))
	}
	shows := func(ctx context.Context, subject *machinev1beta1.Machine, tc misfit) {
		GinkgoHelper()
		if tc.wantWarnings != nil {
			var event string
			Eventually(recorder.Events).Should(Receive(&event))
			Expect(event).To(HavePrefix("Warning FailedValidate "))
			for _, warning := range tc.wantWarnings {
				Expect(event).To(ContainSubstring(warning))
			}
		}
		if tc.wantStatus != nil {
			Eventually(func() machinev1beta1.MachineStatus { return fresh(ctx, subject).Status }).Should(tc.wantStatus)
		}
	}

	const noLabel = "metadata.labels: machine.openshift.io/cluster-api-cluster is missing or empty; set it to"
	const noSpec = "spec.providerSpec.value is missing; set it to describe"
	unlabelled := func(m *machinev1beta1.Machine) { m.Labels = nil }
	specless := func(m *machinev1beta1.Machine) { m.Spec.ProviderSpec.Value = nil }
	undecodable := func(m *machinev1beta1.Machine) {
		m.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"cpu": "four"})
	}

	DescribeTable("a Machine that is wrong from its birth says so, costs nothing, and can go", func(ctx SpecContext, tc misfit) {
		subject := builder.In(namespace, builder.Machine(tc.change))
		create(ctx, subject)
		shows(ctx, subject, tc)
		rests()
		if tc.wantWarnings != nil { // it was never taken hold of
			Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		} else {
			deleteDrained(ctx, subject)
		}
		if tc.held {
			rests()
			Expect(actuator.Instances()).To(ConsistOf(subject.Name))
			edit(ctx, subject, func(m *machinev1beta1.Machine) { m.Spec.LifecycleHooks = machinev1beta1.LifecycleHooks{} })
		}
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(actuator.Instances()).To(BeEmpty())
	},
		Entry("no label of the cluster", misfit{change: unlabelled, wantWarnings: []string{noLabel}}),
		Entry("an empty label of the cluster", misfit{
			change: builder.WithLabels(map[string]string{builder.ClusterLabel: ""}), wantWarnings: []string{noLabel},
		}),
		Entry("no providerSpec", misfit{change: specless, wantWarnings: []string{noSpec}}),
		Entry("nothing that it should have", misfit{
			change:       func(m *machinev1beta1.Machine) { unlabelled(m); specless(m) },
			wantWarnings: []string{noLabel, noSpec},
		}),
		Entry("a providerSpec that cannot be understood", misfit{change: undecodable, wantStatus: And(havePhase("Failed"),
			haveCondition("InstanceUpToDate", "False", "InvalidConfiguration", Equal("spec.providerSpec.value.cpu: a number is required")))}),
		Entry("hooks with the oddest names that the CRD takes", misfit{
			change: func(m *machinev1beta1.Machine) {
				m.Spec.LifecycleHooks.PreTerminate = []machinev1beta1.LifecycleHook{{
					Name:  "0.example.com/" + strings.Repeat("9", 242), // 256 in all
					Owner: "%s %!d(MISSING) {}\n\t\"\u202e" + strings.Repeat("雪", 480),
				}}
				m.Spec.LifecycleHooks.PreDrain = []machinev1beta1.LifecycleHook{{Name: "0-_.0", Owner: "%v%v%v"}}
			},
			wantStatus: And(havePhase("Provisioned"),
				haveCondition("Drainable", "False", "HookPresent", Equal("Drain operation currently blocked by: [{Name:0-_.0 Owner:%v%v%v}]")),
				haveCondition("Terminable", "False", "HookPresent", ContainSubstring("%s %!d(MISSING) {}"))),
			held: true,
		}),
	)

	DescribeTable("a Machine that is made wrong while it runs says so, keeps its phase and its instance, and can go",
		func(ctx SpecContext, tc misfit) {
			subject := builder.In(namespace, builder.Machine())
			create(ctx, subject)
			status := func() machinev1beta1.MachineStatus { return fresh(ctx, subject).Status }
			Eventually(status).Should(havePhase("Provisioned"))
			edit(ctx, subject, tc.change)
			shows(ctx, subject, tc)
			rests()
			Expect(status()).To(havePhase("Provisioned"))
			Expect(actuator.Instances()).To(ConsistOf(subject.Name))
			deleteDrained(ctx, subject)
			Eventually(gone(ctx, subject)).Should(BeTrue())
			Expect(actuator.Instances()).To(BeEmpty())
		},
		Entry("without the label of the cluster", misfit{change: unlabelled, wantWarnings: []string{noLabel},
			wantStatus: haveCondition("InstanceUpToDate", "False", "InvalidConfiguration", ContainSubstring(noLabel))}),
		Entry("without a providerSpec", misfit{change: specless, wantWarnings: []string{noSpec},
			wantStatus: haveCondition("InstanceUpToDate", "False", "InvalidConfiguration", ContainSubstring(noSpec))}),
	)

})

var _ = DescribeTable("The CRD of Machines refuses on its own", func(ctx SpecContext, change func(*machinev1beta1.Machine)) {
	Expect(apierrors.IsInvalid(plane.Client.Create(ctx, builder.In("default", builder.Machine(change))))).To(BeTrue())
},
	Entry("a providerSpec that is text", valued(`"four"`)),
	Entry("a providerSpec that is a list", valued(`[1]`)),
	Entry("a providerSpec that is a number", valued(`4`)),
	Entry("hooks of one name", hooked("SaveData", "SaveData")),
	Entry("a hook whose name is no name", hooked("save data!")),
)

func valued(raw string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(raw)} }
}

func hooked(names ...string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		for _, name := range names {
			m.Spec.LifecycleHooks.PreTerminate = append(m.Spec.LifecycleHooks.PreTerminate, machinev1beta1.LifecycleHook{Name: name, Owner: "backup"})
		}
	}
}
