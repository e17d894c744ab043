package machinehealthcheck_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/controllers/machinehealthcheck"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// countingReader counts the passes: each begins with a get of its MachineHealthCheck.
type countingReader struct {
	client.Reader
	passes *atomic.Int32
}

func (c countingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.passes.Add(1)
	return c.Reader.Get(ctx, key, object, options...)
}

var _ = Describe("MachineHealthCheck", func() {
	const (
		yes, no = corev1.ConditionTrue, corev1.ConditionFalse
		allowed = machinev1beta1.RemediationAllowedCondition
	)
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = suite.Namespace(ctx, plane) })

	newCheck := func(ctx context.Context, mods ...checkMod) *machinev1beta1.MachineHealthCheck {
		GinkgoHelper()
		check := builder.In(namespace, builder.MachineHealthCheck(mods...))
		create(ctx, check)
		return check
	}
	// sent returns how many events of each reason there are about an object.
	sent := func(ctx context.Context, object client.Object) func() map[string]int {
		return func() map[string]int {
			GinkgoHelper()
			list := &eventsv1.EventList{}
			Expect(plane.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			out := map[string]int{}
			for _, event := range list.Items {
				if event.Regarding.UID == object.GetUID() {
					out[event.Type+" "+event.Reason]++
				}
			}
			return out
		}
	}

	It("deletes the Machine of a Node that is NotReady for the timeout, and says so before and after", func(ctx SpecContext) {
		newCheck(ctx, builder.WithConditionTimeouts(5*time.Second)) // enough to be seen in time on a busy machine
		unhealthy := onNode(namespace, yes, time.Now().Add(-time.Hour), builder.WithFinalizer()).create(ctx)
		well := onNode(namespace, yes, time.Now().Add(-time.Hour)).create(ctx)
		startManager(namespace) // now: a Machine that it sees without its Node would be reported as well
		Consistently(living(ctx, unhealthy, well)).Should(HaveLen(2))
		unhealthy.turn(ctx, no, time.Now())
		Eventually(living(ctx, unhealthy, well)).Should(ConsistOf(well.machine.Name))
		Eventually(sent(ctx, unhealthy.machine)).Should(Equal(map[string]int{"Normal DetectedUnhealthy": 1, "Normal MachineDeleted": 1}))
		Consistently(living(ctx, unhealthy, well)).Should(ConsistOf(well.machine.Name))
	})

	It("leaves a Machine alone whose Node recovers in time", func(ctx SpecContext) {
		clock, passes := clocktesting.NewFakePassiveClock(time.Now()), &atomic.Int32{}
		startManager(namespace, func(options *machinehealthcheck.Options, mgr manager.Manager) {
			options.Clock, options.Checks = clock, countingReader{mgr.GetCache(), passes}
		})
		check := newCheck(ctx, builder.WithConditionTimeouts(time.Hour))
		subject := onNode(namespace, yes, clock.Now().Add(-time.Hour)).create(ctx)
		healthy := func() int { return ptrValue(statusOf(ctx, check).CurrentHealthy) }
		Eventually(healthy).Should(Equal(1))
		subject.turn(ctx, no, clock.Now())
		Eventually(healthy).Should(Equal(0))
		clock.SetTime(clock.Now().Add(59 * time.Minute))
		subject.turn(ctx, yes, clock.Now())
		Eventually(healthy).Should(Equal(1))

		By("looking again after the timeout")
		clock.SetTime(clock.Now().Add(time.Hour))
		before := passes.Load()
		touch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"maxUnhealthy":"99%"}}`))
		Expect(plane.Client.Patch(ctx, check.DeepCopy(), touch)).To(Succeed())
		Eventually(passes.Load).Should(BeNumerically(">", before))
		Consistently(living(ctx, subject)).Should(HaveLen(1))
	})

	It("stops while more are unhealthy than allowed, without spinning, and goes on when enough have recovered", func(ctx SpecContext) {
		var members []member
		for i := range 5 {
			ready := yes
			if i < 3 {
				ready = no
			}
			members = append(members, onNode(namespace, ready, time.Now().Add(-time.Hour)).create(ctx))
		}
		check := newCheck(ctx, builder.WithMaxUnhealthy("40%"))
		passes := &atomic.Int32{}
		startManager(namespace, func(options *machinehealthcheck.Options, mgr manager.Manager) {
			options.Checks = countingReader{mgr.GetCache(), passes}
		})
		Eventually(conditionOf(ctx, check, allowed)).Should(Equal("False TooManyUnhealthy"))
		Expect(living(ctx, members...)()).To(HaveLen(5))
		Eventually(sent(ctx, check)).Should(HaveKeyWithValue("Warning RemediationRestricted", 1))
		before := passes.Load()
		Consistently(passes.Load).WithTimeout(suite.Watch(time.Second)).Should(BeNumerically("<=", before+1))
		Expect(sent(ctx, check)()).To(HaveKeyWithValue("Warning RemediationRestricted", 1))

		members[0].turn(ctx, yes, time.Now())
		Eventually(living(ctx, members...)).Should(ConsistOf(members[0].machine.Name, members[3].machine.Name, members[4].machine.Name))
		Eventually(conditionOf(ctx, check, allowed)).Should(Equal("True"))
	})

	It("deletes a Machine whose Node is taken away", func(ctx SpecContext) {
		startManager(namespace)
		newCheck(ctx)
		subject := onNode(namespace, yes, time.Now().Add(-time.Hour)).create(ctx)
		Consistently(living(ctx, subject)).Should(HaveLen(1))
		Expect(plane.Client.Delete(ctx, subject.node)).To(Succeed())
		Eventually(living(ctx, subject)).Should(BeEmpty())
	})

	It("deletes a Machine that gets no Node in time, by its own alarm", func(ctx SpecContext) {
		startManager(namespace)
		newCheck(ctx, builder.WithStartupTimeout(time.Second))
		subject := withoutNode(namespace, builder.LastUpdatedAt(time.Now())).create(ctx)
		Expect(living(ctx, subject)()).To(HaveLen(1))
		Eventually(living(ctx, subject)).Should(BeEmpty())
	})

	It("acts only on what its selector selects, and an empty one selects the namespace", func(ctx SpecContext) {
		startManager(namespace)
		failed := []machineMod{builder.WithPhase("Failed")}
		mine := withoutNode(namespace, append(failed, builder.WithLabels(map[string]string{"pool": "mine"}))...).create(ctx)
		other := withoutNode(namespace, failed...).create(ctx)
		newCheck(ctx, builder.WithSelector(map[string]string{"pool": "mine"}))
		Eventually(living(ctx, mine, other)).Should(ConsistOf(other.machine.Name))
		Consistently(living(ctx, other)).Should(HaveLen(1))

		By("seeing a Machine that gets the label later")
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"pool":"mine"}}}`))
		Expect(plane.Client.Patch(ctx, other.machine.DeepCopy(), patch)).To(Succeed())
		Eventually(living(ctx, other)).Should(BeEmpty())

		third := withoutNode(namespace, failed...).create(ctx)
		newCheck(ctx)
		Eventually(living(ctx, third)).Should(BeEmpty())
	})

	It("does nothing while it is paused, and goes on when it is not", func(ctx SpecContext) {
		startManager(namespace)
		check := newCheck(ctx, builder.WithCheckAnnotations(map[string]string{"cluster.x-k8s.io/paused": ""}))
		subject := withoutNode(namespace, builder.WithPhase("Failed")).create(ctx)
		Consistently(living(ctx, subject)).Should(HaveLen(1))
		Expect(statusOf(ctx, check)).To(Equal(machinev1beta1.MachineHealthCheckStatus{}))
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`))
		Expect(plane.Client.Patch(ctx, check.DeepCopy(), patch)).To(Succeed())
		Eventually(living(ctx, subject)).Should(BeEmpty())
	})

	It("keeps to the limit of remediations in flight, oldest first", func(ctx SpecContext) {
		var members []member
		for i := range 3 {
			since := time.Now().Add(-time.Hour * time.Duration(1+i%2*5+i)) // the second is the oldest, then the third
			members = append(members, onNode(namespace, no, since, builder.WithFinalizer()).create(ctx))
		}
		check := newCheck(ctx, builder.WithCheckAnnotations(map[string]string{"machine-iac.io/max-remediations-in-flight": "40%"}))
		startManager(namespace)
		left := living(ctx, members...)
		for _, want := range [][]int{{0, 2}, {0}, {}} {
			names := []string{}
			for _, i := range want {
				names = append(names, members[i].machine.Name)
			}
			Eventually(left).Should(ConsistOf(names))
			Consistently(left).Should(ConsistOf(names))
			var deleting []*machinev1beta1.Machine // and not what will be as soon as these are let go
			for _, m := range members {
				machine := &machinev1beta1.Machine{}
				err := plane.Client.Get(ctx, client.ObjectKeyFromObject(m.machine), machine)
				if !apierrors.IsNotFound(err) && !machine.DeletionTimestamp.IsZero() {
					deleting = append(deleting, machine)
				}
			}
			for _, machine := range deleting {
				machine.Finalizers = nil
				Expect(plane.Client.Update(ctx, machine)).To(Succeed())
			}
		}
		Eventually(sent(ctx, check)).Should(HaveKeyWithValue("Normal RemediationDeferred", 2))
	})

	It("shows its series while it is there, and no longer", func(ctx SpecContext) {
		metrics := machinehealthcheck.NewMetrics()
		startManager(namespace, func(options *machinehealthcheck.Options, _ manager.Manager) { options.Metrics = metrics })
		unhealthy := onNode(namespace, no, time.Now().Add(-time.Hour), builder.WithFinalizer()).create(ctx)
		onNode(namespace, yes, time.Now().Add(-time.Hour)).create(ctx)
		check := newCheck(ctx)
		Eventually(living(ctx, unhealthy)).Should(BeEmpty())
		labels := fmt.Sprintf("{name=%q,namespace=%q}", check.Name, namespace)
		series := func() map[string]float64 { return seriesOf(metrics) }
		Eventually(series).Should(Equal(map[string]float64{
			"mapi_machinehealthcheck_nodes_covered" + labels:             2,
			"mapi_machinehealthcheck_remediation_success_total" + labels: 1,
			"mapi_machinehealthcheck_short_circuit" + labels:             0,
		}))
		none := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"maxUnhealthy":0}}`))
		Expect(plane.Client.Patch(ctx, check.DeepCopy(), none)).To(Succeed())
		Eventually(series).Should(HaveKeyWithValue("mapi_machinehealthcheck_short_circuit"+labels, 1.0))
		Expect(plane.Client.Delete(ctx, check)).To(Succeed())
		Eventually(series).Should(BeEmpty())
	})
})

func ptrValue(value *int) int {
	if value == nil {
		return -1
	}
	return *value
}

func seriesOf(metrics *machinehealthcheck.Metrics) map[string]float64 {
	GinkgoHelper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Collectors()...)
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	out := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			key := fmt.Sprintf("%s{name=%q,namespace=%q}", family.GetName(), labels["name"], labels["namespace"])
			out[key] = series.GetGauge().GetValue() + series.GetCounter().GetValue()
		}
	}
	return out
}
