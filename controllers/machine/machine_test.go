package machine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("Machine", func() {
	var (
		namespace string
		actuator  *fake.Actuator
		subject   *machinev1beta1.Machine
	)
	BeforeEach(func(ctx SpecContext) {
		var err error
		namespace, err = plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		actuator = &fake.Actuator{}
		subject = builder.In(namespace, builder.Machine())
	})
	invalid := func(m *machinev1beta1.Machine) {
		m.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"cpu": "four"})
	}
	status := func(ctx context.Context) func() machinev1beta1.MachineStatus {
		return func() machinev1beta1.MachineStatus { GinkgoHelper(); return fresh(ctx, subject).Status }
	}
	// started makes the Machine with a manager running, and waits until it has a phase.
	started := func(ctx context.Context, phase string, mods ...func(*machinev1beta1.Machine)) {
		GinkgoHelper()
		startManager(namespace, actuator)
		for _, mod := range mods {
			mod(subject)
		}
		create(ctx, subject)
		Eventually(status(ctx)).Should(havePhase(phase))
	}

	It("goes from birth to Running", func(ctx SpecContext) {
		actuator.Steps = 2
		seen := phasesOf(ctx, namespace)
		started(ctx, "Provisioned")
		machine := fresh(ctx, subject)
		Expect(machine.Finalizers).To(ConsistOf("machine.machine.openshift.io"))
		Expect(machine.Spec.ProviderID).To(HaveValue(Equal(fmt.Sprintf("fake://%s", machine.UID))))
		Expect(machine.Status.Addresses).NotTo(BeEmpty())
		Expect(machine.Labels).To(HaveKeyWithValue("machine.openshift.io/region", "region-1"))
		Expect(machine.Annotations).To(HaveKeyWithValue("machine.openshift.io/instance-state", "running"))
		Expect(machine.Status.LastUpdated.Time).To(BeTemporally("~", time.Now(), time.Minute))

		link(ctx, subject)
		Eventually(status(ctx)).Should(And(havePhase("Running"),
			haveCondition("InstanceExists", "True", "", BeEmpty()),
			haveCondition("InstanceUpToDate", "True", "", BeEmpty()),
			haveCondition("Drainable", "True", "", BeEmpty()),
			haveCondition("Terminable", "True", "", BeEmpty())))
		Eventually(seen).Should(Equal([]string{"", "Provisioning", "Provisioned", "Running"})) // a watch, which may be behind
		Expect(status(ctx)().Conditions).To(HaveLen(4), "nothing is said of fields that the installed CRD does not have")
		Expect(actuator.Instances()).To(ConsistOf(subject.Name))
	})

	It("fails a Machine whose instance is gone, and leaves it alone from then on", func(ctx SpecContext) {
		started(ctx, "Provisioned")
		actuator.Vanish(subject.UID)
		touch(ctx, subject)
		Eventually(status(ctx)).Should(And(havePhase("Failed"),
			haveCondition("InstanceExists", "False", "InstanceMissing", ContainSubstring("not found on provider")),
			MatchFields(IgnoreExtras, Fields{"ErrorReason": BeNil(), "ErrorMessage": HaveValue(Equal("can't find created instance"))})))
		Expect(fresh(ctx, subject).Annotations).To(HaveKeyWithValue("machine.openshift.io/instance-state", "Unknown"))

		calls := len(actuator.Calls())
		for range 3 {
			touch(ctx, subject)
		}
		edit(ctx, subject, func(m *machinev1beta1.Machine) {
			m.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"cpu": 2})
		})
		Consistently(func() int { return len(actuator.Calls()) }).Should(Equal(calls))
		Expect(status(ctx)()).To(havePhase("Failed"))

		deleteDrained(ctx, subject)
		Eventually(gone(ctx, subject)).Should(BeTrue())
	})

	It("fails a Machine that cannot be understood, and goes on once its spec is fixed", func(ctx SpecContext) {
		started(ctx, "Failed", invalid)
		Expect(status(ctx)()).To(And(
			haveCondition("InstanceExists", "False", "InstanceNotCreated", ContainSubstring("a number is required")),
			haveCondition("InstanceUpToDate", "False", "InvalidConfiguration", Equal("spec.providerSpec.value.cpu: a number is required")),
			MatchFields(IgnoreExtras, Fields{
				"ErrorReason":  HaveValue(Equal(machinev1beta1.InvalidConfigurationMachineError)),
				"ErrorMessage": HaveValue(Equal("spec.providerSpec.value.cpu: a number is required")),
			})))
		calls := len(actuator.Calls())
		touch(ctx, subject)
		Consistently(func() int { return len(actuator.Calls()) }).Should(Equal(calls))

		edit(ctx, subject, func(m *machinev1beta1.Machine) {
			m.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"cpu": 4})
		})
		Eventually(status(ctx)).Should(And(havePhase("Provisioned"),
			MatchFields(IgnoreExtras, Fields{"ErrorReason": BeNil(), "ErrorMessage": BeNil()})))
		Expect(fresh(ctx, subject).Annotations).NotTo(HaveKey("machine-iac.io/failed-generation"))
	})

	It("fails again when it is fixed the wrong way", func(ctx SpecContext) {
		started(ctx, "Failed", invalid)
		creates := len(actuator.Calls(fake.Create))
		edit(ctx, subject, func(m *machinev1beta1.Machine) {
			m.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"cpu": "five"})
		})
		Eventually(func() int { return len(actuator.Calls(fake.Create)) }).Should(Equal(creates + 1))
		Eventually(status(ctx)).Should(havePhase("Failed"))
		Consistently(func() int { return len(actuator.Calls(fake.Create)) }).Should(Equal(creates + 1))
	})

	It("retries other errors of Create and shows them", func(ctx SpecContext) {
		for range 6 {
			actuator.Fail(fake.Create, errors.New("connection refused"))
		}
		shown, reason := conditionsOf(ctx, namespace, "InstanceExists"), conditionsOf(ctx, namespace, "InstanceUpToDate")
		started(ctx, "Provisioned")
		Expect(shown()).To(ContainElement(haveText("False", "InstanceNotCreated", Equal("Instance has not been created: connection refused"))))
		Expect(reason()).To(ContainElement(haveText("False", "CreateError", Equal("connection refused"))))
		Eventually(status(ctx)).Should(haveCondition("InstanceUpToDate", "True", "", BeEmpty()))
	})

	It("waits with a Create that says when, and shows why", func(ctx SpecContext) {
		for range 5 {
			actuator.Fail(fake.Create, actuators.InsufficientResources("no quota left").In(time.Hour))
		}
		started(ctx, "Provisioning")
		Eventually(status(ctx)).Should(And(
			haveCondition("InstanceExists", "False", "InstanceNotCreated", Equal("Instance has not been created: no quota left")),
			haveCondition("InstanceUpToDate", "False", "InsufficientResources", Equal("no quota left")),
			MatchFields(IgnoreExtras, Fields{"ErrorReason": BeNil(), "ErrorMessage": BeNil()})))
		Consistently(func() int { return len(actuator.Calls(fake.Create)) }).Should(BeNumerically("<=", 2))
	})

	It("shows an error of Update, keeps the phase, and takes the word back", func(ctx SpecContext) {
		started(ctx, "Provisioned")
		refused := actuators.UnsupportedChange("the disk cannot shrink")
		actuator.Fail(fake.Update, refused)
		actuator.Fail(fake.Update, refused)
		touch(ctx, subject)
		Eventually(status(ctx)).Should(And(havePhase("Provisioned"),
			haveCondition("InstanceUpToDate", "False", "UnsupportedChange", Equal("the disk cannot shrink"))))
		touch(ctx, subject)
		touch(ctx, subject)
		Eventually(status(ctx)).Should(haveCondition("InstanceUpToDate", "True", "", BeEmpty()))
	})

	It("does not know whether the instance exists while the provider cannot be asked", func(ctx SpecContext) {
		started(ctx, "Provisioned")
		shown := conditionsOf(ctx, namespace, "InstanceExists")
		actuator.Fail(fake.Exists, errors.New("connection refused"))
		touch(ctx, subject)
		Eventually(shown).Should(ContainElement(haveText("Unknown", "ErrorCheckingProvider", Equal("Failed to check if machine exists: connection refused"))))
		Eventually(status(ctx)).Should(And(havePhase("Provisioned"), haveCondition("InstanceExists", "True", "", BeEmpty())))
	})

	It("says in an event what is wrong with a Machine that no actuator could serve", func(ctx SpecContext) {
		startManager(namespace, actuator)
		delete(subject.Labels, builder.ClusterLabel)
		create(ctx, subject)
		Eventually(func() []string { return notes(ctx, namespace, "FailedValidate") }).Should(ContainElement(
			ContainSubstring("machine.openshift.io/cluster-api-cluster is missing")))
		Expect(fresh(ctx, subject).Finalizers).To(BeEmpty())
		Expect(actuator.Calls()).To(BeEmpty())

		builder.WithLabels(map[string]string{builder.ClusterLabel: builder.ClusterID})(subject)
		edit(ctx, subject, func(m *machinev1beta1.Machine) { m.Labels = subject.Labels })
		Eventually(status(ctx)).Should(havePhase("Provisioned"))
	})

	It("is woken through the channel", func(ctx SpecContext) {
		wake := make(chan event.GenericEvent)
		startManager(namespace, actuator, func(o *machine.Options, _ manager.Manager) { o.Events = wake })
		create(ctx, subject)
		Eventually(status(ctx)).Should(havePhase("Provisioned"))
		Eventually(status(ctx)).Should(haveCondition("InstanceUpToDate", "True", "", BeEmpty()))
		before := callsAtRest(actuator, fake.Exists)
		Eventually(wake).Should(BeSent(event.GenericEvent{Object: subject}))
		Eventually(func() int { return len(actuator.Calls(fake.Exists)) }).Should(Equal(before + 1))
	})

	It("writes nothing while nothing changes", func(ctx SpecContext) {
		wake := make(chan event.GenericEvent)
		var noting *notingClient
		startManager(namespace, actuator, func(o *machine.Options, mgr manager.Manager) {
			noting = &notingClient{Client: mgr.GetClient()}
			o.Client, o.Events = noting, wake
		})
		create(ctx, subject)
		link(ctx, subject)
		Eventually(status(ctx)).Should(havePhase("Running"))
		Eventually(noting.taken).WithPolling(300 * time.Millisecond).Should(BeEmpty())
		version := fresh(ctx, subject).ResourceVersion
		looks := len(actuator.Calls(fake.Update))
		for i := range 5 {
			Eventually(wake).Should(BeSent(event.GenericEvent{Object: subject}))
			Eventually(func() int { return len(actuator.Calls(fake.Update)) }).Should(Equal(looks + i + 1))
		}
		Consistently(noting.taken).Should(BeEmpty())
		Expect(fresh(ctx, subject).ResourceVersion).To(Equal(version))
	})

	It("is counted while it is there", func(ctx SpecContext) {
		registry := prometheus.NewPedanticRegistry()
		startManager(namespace, actuator, func(_ *machine.Options, mgr manager.Manager) {
			registry.MustRegister(machine.NewCollector(ctx, mgr.GetClient()))
		})
		// series returns how many there are of each name.
		series := func() map[string]int {
			GinkgoHelper()
			families, err := registry.Gather()
			Expect(err).NotTo(HaveOccurred())
			out := map[string]int{}
			for _, family := range families {
				out[family.GetName()] = len(family.GetMetric())
			}
			return out
		}
		const created = "mapi_machine_created_timestamp_seconds"
		create(ctx, subject)
		Eventually(series).Should(And(HaveKeyWithValue(created, 1), HaveKeyWithValue("mapi_machine_items", 1)))
		deleteDrained(ctx, subject)
		Eventually(series).Should(And(Not(HaveKey(created)), HaveKeyWithValue("mapi_mao_collector_up", 1)))
	})

	It("goes only after its instance", func(ctx SpecContext) {
		actuator.Steps = 2
		started(ctx, "Provisioned")
		node := link(ctx, subject)
		Eventually(status(ctx)).Should(havePhase("Running"))
		actuator.Fail(fake.Delete, actuators.DeleteFailed("the disk is held").In(500*time.Millisecond))
		actuator.Fail(fake.Delete, actuators.DeleteFailed("the disk is held").In(500*time.Millisecond))
		Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		Eventually(status(ctx)).Should(havePhase("Deleting"))
		Consistently(func() []fake.Call { return actuator.Calls(fake.Delete) }).Should(BeEmpty())
		drain(ctx, subject, corev1.ConditionTrue)
		Eventually(status(ctx)).Should(And(havePhase("Deleting"),
			haveCondition("InstanceUpToDate", "False", "DeleteError", Equal("the disk is held"))))
		Expect(actuator.Instances()).To(ConsistOf(subject.Name))
		Expect(gone(ctx, node)()).To(BeFalse())
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(actuator.Instances()).To(BeEmpty())
		Expect(gone(ctx, node)()).To(BeTrue())
	})

	It("goes at once when nothing was ever made", func(ctx SpecContext) {
		started(ctx, "Failed", invalid)
		actuator.Fail(fake.Delete, actuators.InvalidConfiguration("spec.providerSpec.value.cpu: a number is required"))
		deleteDrained(ctx, subject)
		Eventually(gone(ctx, subject)).Should(BeTrue())
	})

	It("goes although it is no longer valid", func(ctx SpecContext) {
		started(ctx, "Provisioned")
		edit(ctx, subject, func(m *machinev1beta1.Machine) { m.Labels = nil })
		deleteDrained(ctx, subject)
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(actuator.Instances()).To(BeEmpty())
	})

	It("keeps its instance while a preTerminate hook holds it", func(ctx SpecContext) {
		started(ctx, "Provisioned", func(m *machinev1beta1.Machine) {
			m.Spec.LifecycleHooks.PreTerminate = []machinev1beta1.LifecycleHook{{Name: "SaveData", Owner: "backup"}}
		})
		Expect(status(ctx)()).To(haveCondition("Terminable", "False", "HookPresent",
			Equal("Terminate operation currently blocked by: [{Name:SaveData Owner:backup}]")))
		deleteDrained(ctx, subject)
		touch(ctx, subject)
		Consistently(func() int { return len(actuator.Calls(fake.Delete)) }).Should(BeZero())
		Expect(actuator.Instances()).To(ConsistOf(subject.Name))

		edit(ctx, subject, func(m *machinev1beta1.Machine) { m.Spec.LifecycleHooks.PreTerminate = nil })
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(actuator.Instances()).To(BeEmpty())
	})

	It("shows a preDrain hook", func(ctx SpecContext) {
		started(ctx, "Provisioned", func(m *machinev1beta1.Machine) {
			m.Spec.LifecycleHooks.PreDrain = []machinev1beta1.LifecycleHook{{Name: "MoveData", Owner: "storage"}}
		})
		Expect(status(ctx)()).To(haveCondition("Drainable", "False", "HookPresent",
			Equal("Drain operation currently blocked by: [{Name:MoveData Owner:storage}]")))
	})

	It("leaves a Node alone that was made again under the name of its own", func(ctx SpecContext) {
		started(ctx, "Provisioned")
		node := link(ctx, subject)
		Expect(plane.Client.Delete(ctx, node)).To(Succeed())
		again := builder.Node(func(n *corev1.Node) { n.Name = node.Name })
		create(ctx, again)
		deleteDrained(ctx, subject)
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(gone(ctx, again)()).To(BeFalse())
	})

	It("goes when its Node is gone already", func(ctx SpecContext) {
		started(ctx, "Provisioned")
		Expect(plane.Client.Delete(ctx, link(ctx, subject))).To(Succeed())
		deleteDrained(ctx, subject)
		Eventually(gone(ctx, subject)).Should(BeTrue())
	})

	It("says Deleting but does nothing more while only another holds the Machine", func(ctx SpecContext) {
		started(ctx, "Provisioned")
		edit(ctx, subject, func(m *machinev1beta1.Machine) { m.Finalizers = append(m.Finalizers, "example.com/hold") })
		deleteDrained(ctx, subject)
		Eventually(func() []string { return fresh(ctx, subject).Finalizers }).Should(ConsistOf("example.com/hold"))
		Expect(status(ctx)()).To(And(havePhase("Deleting"),
			haveCondition("InstanceExists", "False", "InstanceMissing", Equal("Instance has been deleted"))))
		deletes := len(actuator.Calls(fake.Delete))
		touch(ctx, subject)
		Consistently(func() int { return len(actuator.Calls(fake.Delete)) }).Should(Equal(deletes))
	})
})

func havePhase(phase string) types.GomegaMatcher {
	return HaveField("Phase", HaveValue(Equal(phase)))
}

// haveText matches a condition.
func haveText(status corev1.ConditionStatus, reason string, message types.GomegaMatcher) types.GomegaMatcher {
	severity := machinev1beta1.ConditionSeverityNone
	if status == corev1.ConditionFalse {
		severity = machinev1beta1.ConditionSeverityWarning
	}
	return MatchFields(IgnoreExtras, Fields{
		"Status": Equal(status), "Severity": Equal(severity), "Reason": Equal(reason), "Message": message,
	})
}

// haveCondition matches a Machine's status by one condition.
func haveCondition(kind machinev1beta1.ConditionType, status corev1.ConditionStatus, reason string, message types.GomegaMatcher) types.GomegaMatcher {
	find := func(s machinev1beta1.MachineStatus) machinev1beta1.Condition {
		if found := machineapi.FindCondition(s.Conditions, kind); found != nil {
			return *found
		}
		return machinev1beta1.Condition{}
	}
	return WithTransform(find, haveText(status, reason, message))
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	Expect(plane.Create(ctx, objects...)).To(Succeed())
}

func fresh(ctx context.Context, subject *machinev1beta1.Machine) *machinev1beta1.Machine {
	GinkgoHelper()
	machine := &machinev1beta1.Machine{}
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(subject), machine)).To(Succeed())
	return machine
}

func gone(ctx context.Context, object client.Object) func() bool {
	return func() bool {
		return apierrors.IsNotFound(plane.Client.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object)))
	}
}

// edit changes a Machine as a user does.
func edit(ctx context.Context, subject *machinev1beta1.Machine, change func(*machinev1beta1.Machine)) {
	GinkgoHelper()
	before := fresh(ctx, subject)
	after := before.DeepCopy()
	change(after)
	Expect(plane.Client.Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
}

// touch makes an event without a meaning.
func touch(ctx context.Context, subject *machinev1beta1.Machine) {
	GinkgoHelper()
	edit(ctx, subject, func(m *machinev1beta1.Machine) {
		builder.WithAnnotations(map[string]string{"touch": builder.Name("at")})(m)
	})
}

// link gives the Machine a Node, as the nodelink controller does.
func link(ctx context.Context, subject *machinev1beta1.Machine) *corev1.Node {
	GinkgoHelper()
	node := builder.Node()
	create(ctx, node)
	before := fresh(ctx, subject)
	after := before.DeepCopy()
	builder.WithNodeRef(node)(after)
	Expect(plane.Client.Status().Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
	return node
}

// drain says of a Machine that is being deleted how far its Node is drained, as the drain
// controller does: once the phase is Deleting.
func drain(ctx context.Context, subject *machinev1beta1.Machine, status corev1.ConditionStatus) {
	GinkgoHelper()
	Eventually(func() machinev1beta1.MachineStatus { return fresh(ctx, subject).Status }).Should(havePhase("Deleting"))
	sayDrained(ctx, subject, status)
}

func sayDrained(ctx context.Context, subject *machinev1beta1.Machine, status corev1.ConditionStatus) {
	GinkgoHelper()
	Eventually(func() error { // the controller may write meanwhile
		before := fresh(ctx, subject)
		after := before.DeepCopy()
		word := machinev1beta1.Condition{Type: machinev1beta1.MachineDrained, Status: status}
		after.Status.Conditions = machineapi.WithCondition(after.Status.Conditions, word, time.Now())
		return plane.Client.Status().Patch(ctx, after, pipeline.IfUnchanged(before))
	}).Should(Succeed())
}

// deleteDrained deletes a Machine and lets its drain succeed.
func deleteDrained(ctx context.Context, subject *machinev1beta1.Machine) {
	GinkgoHelper()
	Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
	drain(ctx, subject, corev1.ConditionTrue)
}

// callsAtRest waits until the actuator is left alone, and returns how often it was called until
// then.
func callsAtRest(actuator *fake.Actuator, verbs ...fake.Verb) int {
	GinkgoHelper()
	before := -1
	Eventually(func() bool {
		earlier := before
		before = len(actuator.Calls(verbs...))
		return earlier == before
	}).WithPolling(300 * time.Millisecond).Should(BeTrue())
	return before
}

func notes(ctx context.Context, namespace, reason string) []string {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(plane.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	var out []string
	for _, event := range list.Items {
		if event.Reason == reason {
			out = append(out, event.Note)
		}
	}
	return out
}

// history watches the Machines of a namespace until the test ends, and returns each value of read
// that differs from the last.
func history[T any](ctx context.Context, namespace string, read func(*machinev1beta1.Machine) T) func() []T {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
	Expect(err).NotTo(HaveOccurred())
	stream, err := watcher.Watch(ctx, &machinev1beta1.MachineList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stream.Stop)
	var mu sync.Mutex
	var values []T
	go func() {
		for change := range stream.ResultChan() {
			machine, ok := change.Object.(*machinev1beta1.Machine)
			if !ok || change.Type == watch.Deleted {
				continue
			}
			mu.Lock()
			values = append(values, read(machine))
			mu.Unlock()
		}
	}()
	return func() []T {
		mu.Lock()
		defer mu.Unlock()
		return append([]T(nil), values...)
	}
}

func phasesOf(ctx context.Context, namespace string) func() []string {
	all := history(ctx, namespace, func(m *machinev1beta1.Machine) string {
		if m.Status.Phase == nil {
			return ""
		}
		return *m.Status.Phase
	})
	return func() []string {
		var distinct []string
		for _, phase := range all() {
			if len(distinct) == 0 || distinct[len(distinct)-1] != phase {
				distinct = append(distinct, phase)
			}
		}
		return distinct
	}
}

func conditionsOf(ctx context.Context, namespace string, kind machinev1beta1.ConditionType) func() []machinev1beta1.Condition {
	return history(ctx, namespace, func(m *machinev1beta1.Machine) machinev1beta1.Condition {
		if found := machineapi.FindCondition(m.Status.Conditions, kind); found != nil {
			return *found
		}
		return machinev1beta1.Condition{}
	})
}
