package drain_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/drain"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("Drains", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) { w = newWorld(ctx) })

	It("are not held up by 20 that cannot end", func(ctx SpecContext) {
		var blocked []*machinev1beta1.Machine
		for range 20 {
			node := w.node(ctx)
			w.guarded(ctx, node)
			blocked = append(blocked, w.deleting(ctx, node))
		}
		startManager(w.namespace)
		Eventually(drainedOf(ctx, blocked[0])).Should(failing(Not(BeEmpty())))
		node := w.node(ctx)
		pod := w.pod(ctx, node)
		free := w.deleting(ctx, node)
		Eventually(drainedOf(ctx, free)).Should(succeeded())
		Expect(gone(ctx, pod)()).To(BeTrue())
		for _, machine := range blocked {
			Eventually(drainedOf(ctx, machine)).Should(failing(Not(BeEmpty())))
		}
	})

	It("go on where they were after the manager has restarted", func(ctx SpecContext) {
		node := w.node(ctx, builder.WithNodeRole("control-plane"))
		_, budget := w.guarded(ctx, node)
		stop := startManager(w.namespace)
		machine := w.deleting(ctx, node, builder.WithAnnotations(map[string]string{drain.TimeoutAnnotation: "1h"}))
		Eventually(drainedOf(ctx, machine)).Should(failing(ContainSubstring(budget.Name)))
		started := machine.Annotations[drain.StartedAnnotation]
		Expect(started).NotTo(BeEmpty())
		before := drainedOf(ctx, machine)()
		stop()
		Expect(drainedOf(ctx, machine)()).To(Equal(before), "a pass that the manager's end has ended is no failure")

		startManager(w.namespace)
		allow(ctx, budget)
		Eventually(drainedOf(ctx, machine)).Should(succeeded())
		Expect(machine.Annotations).To(HaveKeyWithValue(drain.StartedAnnotation, started))
		Eventually(events(ctx, machine)).Should(HaveEvent("Normal DrainSucceeded"))
		Expect(countOf("Normal DrainProceeds", events(ctx, machine)())).To(Equal(1))
	})

	It("end at their deadline, with the pods named that are left", func(ctx SpecContext) {
		// A pass ends long after the deadline, so that nothing but the deadline's own alarm can be
		// in time.
		startManager(w.namespace, func(o *drain.Options) { o.AttemptTimeout = 18 * time.Second })
		node := w.node(ctx)
		pod, _ := w.guarded(ctx, node)
		machine := w.deleting(ctx, node, builder.WithAnnotations(map[string]string{drain.TimeoutAnnotation: "3s"}))
		Eventually(drainedOf(ctx, machine)).Should(condition("True", "", "DrainTimedOut", And(
			ContainSubstring("3s"), ContainSubstring(w.namespace+"/"+pod.Name))))
		started, err := time.Parse(time.RFC3339, machine.Annotations[drain.StartedAnnotation])
		Expect(err).NotTo(HaveOccurred())
		// Times are whole seconds, and a busy machine is late.
		Expect(drainedOf(ctx, machine)().LastTransitionTime.Time).To(And(
			BeTemporally(">=", started.Add(2*time.Second)), BeTemporally("<", started.Add(10*time.Second))))
		Eventually(events(ctx, machine)).Should(ContainElement(And(HavePrefix("Warning DrainTimedOut"), ContainSubstring(pod.Name))))
		Expect(gone(ctx, pod)()).To(BeFalse())
	})

	It("have passed their deadline while no manager ran", func(ctx SpecContext) {
		node := w.node(ctx)
		w.guarded(ctx, node)
		machine := w.deleting(ctx, node, builder.WithAnnotations(map[string]string{
			drain.TimeoutAnnotation: "1m", drain.StartedAnnotation: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
		}))
		startManager(w.namespace)
		Eventually(drainedOf(ctx, machine)).Should(condition("True", "", "DrainTimedOut", ContainSubstring("Remaining pods: ")))
		Expect(cordoned(ctx, node)()).To(BeFalse())
	})

	It("take a deadline that is set while they wait", func(ctx SpecContext) {
		startManager(w.namespace)
		node := w.node(ctx)
		w.guarded(ctx, node)
		machine := w.deleting(ctx, node, builder.WithAnnotations(map[string]string{drain.TimeoutAnnotation: "-5m"}))
		Eventually(drainedOf(ctx, machine)).Should(failing(Not(BeEmpty())))
		Eventually(events(ctx, machine)).Should(ContainElement(And(
			HavePrefix("Warning InvalidDrainTimeout"), ContainSubstring(drain.TimeoutAnnotation), ContainSubstring("-5m"))))
		Expect(machine.Annotations).NotTo(HaveKey(drain.StartedAnnotation))
		annotate(ctx, machine, drain.TimeoutAnnotation, "1s")
		Eventually(drainedOf(ctx, machine)).Should(condition("True", "", "DrainTimedOut", Not(BeEmpty())))
		Expect(countOf("Warning InvalidDrainTimeout", events(ctx, machine)())).To(Equal(1))
	})

	DescribeTable("stop at once when nobody needs them any more", func(ctx SpecContext, status bool, content string) {
		metrics := drain.NewMetrics()
		startManager(w.namespace, func(o *drain.Options) { o.AttemptTimeout, o.Metrics = 12*time.Second, metrics })
		node := w.node(ctx)
		pod, budget := w.guarded(ctx, node)
		machine := w.deleting(ctx, node)
		Eventually(running(metrics)).Should(BeEquivalentTo(1))
		patch := client.RawPatch("application/merge-patch+json", []byte(content))
		if status {
			Expect(plane.Client.Status().Patch(ctx, machine, patch)).To(Succeed())
		} else {
			Expect(plane.Client.Patch(ctx, machine, patch)).To(Succeed())
		}
		Eventually(running(metrics)).WithTimeout(5 * time.Second).Should(BeZero()) // a quarter of an attempt passes between two evictions
		allow(ctx, budget)
		Consistently(gone(ctx, pod)).Should(BeFalse())
	},
		Entry("the Machine is said to be drained", true,
			`{"status":{"conditions":[{"type":"Drained","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
		Entry("the Machine is let go", false, `{"metadata":{"finalizers":null}}`),
	)
})

// running returns how many passes run.
func running(metrics *drain.Metrics) func() float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Collectors()...)
	return func() float64 {
		GinkgoHelper()
		families, err := registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			if family.GetName() == "machine_iac_drains_running" {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
}
