package capacity_test

import (
	"encoding/json"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

const (
	cpu    = "machine.openshift.io/vCPU"
	memory = "machine.openshift.io/memoryMb"
	gpu    = "machine.openshift.io/GPU"
	labels = "capacity.cluster-autoscaler.kubernetes.io/labels"
	record = "machine-iac.io/capacity-labels"
	sizes  = "machine-iac.io/capacity-size"

	upstream = "capacity.cluster-autoscaler.kubernetes.io/"
)

var known = map[string]actuators.Capacity{
	"small": {CPU: 2, MemoryMiB: 4096, Architecture: "amd64"},
	"big":   {CPU: 64, MemoryMiB: 524288, GPU: 8, Architecture: "arm64"},
}

// ofType makes the template ask for an instance type.
func ofType(name string) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) {
		s.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"instanceType": name})
	}
}

func annotated(pairs map[string]string) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Annotations = pairs }
}

func (w *world) create(ctx SpecContext, mods ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	GinkgoHelper()
	set := builder.In(w.namespace, builder.MachineSet(mods...))
	Expect(plane.Create(ctx, set)).To(Succeed())
	inCharge(ctx, set, set.Spec.AuthoritativeAPI)
	return set
}

// inCharge says who is in charge, as the machineset controller does.
func inCharge(ctx SpecContext, set *machinev1beta1.MachineSet, who machinev1beta1.MachineAuthority) {
	GinkgoHelper()
	status, err := json.Marshal(map[string]any{"status": map[string]any{"authoritativeAPI": who}})
	Expect(err).NotTo(HaveOccurred())
	Expect(plane.Client.Status().Patch(ctx, set, client.RawPatch(types.MergePatchType, status))).To(Succeed())
}

// change writes a MachineSet as a user does, by a merge patch.
func change(ctx SpecContext, set *machinev1beta1.MachineSet, mod func(*machinev1beta1.MachineSet)) {
	GinkgoHelper()
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
	before := set.DeepCopy()
	mod(set)
	Expect(plane.Client.Patch(ctx, set, client.MergeFrom(before))).To(Succeed())
}

func annotations(ctx SpecContext, set *machinev1beta1.MachineSet) func(Gomega) map[string]string {
	return func(g Gomega) map[string]string {
		g.Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		return set.Annotations
	}
}

var small = map[string]string{
	cpu: "2", memory: "4096", gpu: "0", labels: "kubernetes.io/arch=amd64", record: "kubernetes.io/arch=amd64",
	upstream + "cpu": "2", upstream + "memory": "4Gi", upstream + "gpu-count": "0", upstream + "gpu-type": "",
	sizes: "vCPU=2,cpu=2,memoryMb=4096,memory=4Gi,GPU=0,gpu-count=0,gpu-type=",
}

var _ = Describe("The annotations for scale from zero", func() {
	It("are written on a MachineSet, on its metadata only, and once", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, ofType("small"), builder.WithReplicas(0))
		spec := set.Spec.DeepCopy()
		Eventually(annotations(ctx, set)).Should(Equal(small))
		Expect(set.Generation).To(BeEquivalentTo(1))
		Expect(set.Spec.Template.Spec.ProviderSpec.Value.Raw).To(MatchJSON(spec.Template.Spec.ProviderSpec.Value.Raw))
		version := set.ResourceVersion
		// Its own write wakes the controller once, and once more if the cache was behind.
		Eventually(w.asked).Should(BeNumerically(">=", 2))
		Consistently(func(g Gomega) string {
			annotations(ctx, set)(g)
			return set.ResourceVersion
		}).Should(Equal(version))
		Expect(w.asked()).To(BeNumerically("<=", 3))
		Expect(w.events).NotTo(Receive())
	})

	It("follow the template's instance type", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, ofType("small"), annotated(map[string]string{"example.com/a": "b", labels: "z=1"}))
		Eventually(annotations(ctx, set)).Should(HaveKeyWithValue(labels, "z=1,kubernetes.io/arch=amd64"))
		change(ctx, set, ofType("big"))
		Eventually(annotations(ctx, set)).Should(Equal(map[string]string{
			"example.com/a": "b", cpu: "64", memory: "524288", gpu: "8", labels: "z=1,kubernetes.io/arch=arm64", record: "kubernetes.io/arch=arm64",
			upstream + "cpu": "64", upstream + "memory": "512Gi", upstream + "gpu-count": "8", upstream + "gpu-type": "nvidia.com/gpu",
			sizes: "vCPU=64,cpu=64,memoryMb=524288,memory=512Gi,GPU=8,gpu-count=8,gpu-type=nvidia.com/gpu",
		}))
	})

	It("follow the template's labels and taints", func(ctx SpecContext) {
		w := start(ctx, known)
		tainted := func(value string) func(*machinev1beta1.MachineSet) {
			return func(s *machinev1beta1.MachineSet) {
				s.Spec.Template.Spec.Labels = map[string]string{"pool": value}
				s.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "pool", Value: value, Effect: corev1.TaintEffectNoSchedule}}
			}
		}
		set := w.create(ctx, ofType("small"), tainted("a"))
		Eventually(annotations(ctx, set)).Should(And(
			HaveKeyWithValue(labels, "kubernetes.io/arch=amd64,pool=a"), HaveKeyWithValue(upstream+"taints", "pool=a:NoSchedule"),
		))
		change(ctx, set, tainted("b"))
		Eventually(annotations(ctx, set)).Should(And(
			HaveKeyWithValue(labels, "kubernetes.io/arch=amd64,pool=b"), HaveKeyWithValue(upstream+"taints", "pool=b:NoSchedule"),
		))
	})

	It("leave to a user the sizes that the user has set, whatever the type", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, ofType("small"), annotated(map[string]string{upstream + "memory": "3500Mi"}))
		Eventually(annotations(ctx, set)).Should(HaveKeyWithValue(upstream+"cpu", "2"))
		change(ctx, set, ofType("big"))
		Eventually(annotations(ctx, set)).Should(HaveKeyWithValue(upstream+"cpu", "64"))
		Expect(set.Annotations).To(HaveKeyWithValue(upstream+"memory", "3500Mi"))
	})

	It("keep a number of GPUs that a user sets later, whatever the type", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, ofType("small"))
		Eventually(annotations(ctx, set)).Should(Equal(small))
		change(ctx, set, func(s *machinev1beta1.MachineSet) { s.Annotations[gpu] = "2" })
		Eventually(annotations(ctx, set)).Should(HaveKeyWithValue(upstream+"gpu-count", "2"))
		change(ctx, set, ofType("big"))
		Eventually(annotations(ctx, set)).Should(HaveKeyWithValue(cpu, "64"))
		Expect(set.Annotations).To(And(HaveKeyWithValue(gpu, "2"), HaveKeyWithValue(upstream+"gpu-count", "2")))
	})

	It("leave to a user the labels that the user has set", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, ofType("small"), annotated(map[string]string{labels: "kubernetes.io/arch=s390x,z=1"}))
		Eventually(annotations(ctx, set)).Should(HaveKeyWithValue(cpu, "2"))
		Expect(set.Annotations).To(HaveKeyWithValue(labels, "kubernetes.io/arch=s390x,z=1"))
		change(ctx, set, ofType("big"))
		Eventually(annotations(ctx, set)).Should(HaveKeyWithValue(cpu, "64"))
		Expect(set.Annotations).To(HaveKeyWithValue(labels, "kubernetes.io/arch=s390x,z=1"))
	})

	It("come back when somebody takes them off", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, ofType("small"))
		Eventually(annotations(ctx, set)).Should(Equal(small))
		change(ctx, set, func(s *machinev1beta1.MachineSet) { s.Annotations = nil })
		Eventually(annotations(ctx, set)).Should(Equal(small))
	})

	It("are not looked at when something else changes", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, ofType("small"))
		Eventually(annotations(ctx, set)).Should(Equal(small))
		Eventually(w.asked).Should(Equal(2))
		change(ctx, set, builder.WithReplicas(3))
		change(ctx, set, func(s *machinev1beta1.MachineSet) { s.Labels["a"] = "b" })
		set.Status.Replicas = 3
		Expect(plane.Client.Status().Update(ctx, set)).To(Succeed())
		Consistently(w.asked).Should(Equal(2))
	})

	It("stay as they are where the provider knows no size", func(ctx SpecContext) {
		w := start(ctx, nil)
		byHand := map[string]string{cpu: "3", labels: "a=1"}
		set := w.create(ctx, ofType("small"), annotated(byHand))
		Eventually(w.asked).Should(Equal(1))
		Consistently(annotations(ctx, set)).Should(Equal(byHand))
		Expect(w.events).NotTo(Receive())
	})
})

var _ = Describe("A MachineSet whose size is not known", func() {
	It("reports of an instance type that nobody knows, once, and waits for a change", func(ctx SpecContext) {
		w := start(ctx, known)
		byHand := map[string]string{cpu: "3"}
		set := w.create(ctx, ofType("huge"), annotated(byHand))
		Eventually(w.events).Should(Receive(And(
			HavePrefix("Warning FailedUpdate "), ContainSubstring(`"huge"`), ContainSubstring("the fake"), ContainSubstring("add it to Types"),
			ContainSubstring("spec.template.spec.providerSpec.value.instanceType"),
		)))
		change(ctx, set, builder.WithReplicas(3))
		Consistently(w.asked).Should(Equal(1))
		Expect(annotations(ctx, set)(Default)).To(Equal(byHand))
		change(ctx, set, ofType("small"))
		Eventually(annotations(ctx, set)).Should(And(HaveKeyWithValue(memory, "4096"), HaveKeyWithValue(cpu, "3")))
		change(ctx, set, func(s *machinev1beta1.MachineSet) { delete(s.Annotations, cpu) })
		Eventually(annotations(ctx, set)).Should(Equal(small))
		Expect(w.events).NotTo(Receive())
	})

	It("reports of a providerSpec that cannot be read, once", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, func(s *machinev1beta1.MachineSet) {
			s.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"cpu": "four"})
		})
		Eventually(w.events).Should(Receive(And(
			HavePrefix("Warning ReconcileError "), ContainSubstring("spec.template.spec.providerSpec.value.cpu: a number is required"),
		)))
		Consistently(w.asked).Should(Equal(1))
		change(ctx, set, func(s *machinev1beta1.MachineSet) { s.Spec.Template.Spec.ProviderSpec.Value = nil })
		Eventually(w.events).Should(Receive(ContainSubstring("spec.template.spec.providerSpec.value: it is missing")))
		Expect(annotations(ctx, set)(Default)).To(BeEmpty())
	})

	It("is asked for again after an error of another kind, without an event", func(ctx SpecContext) {
		w := start(ctx, known)
		for range 3 {
			w.estimator.Fail(fake.Capacity, errors.New("connection reset by peer"))
		}
		set := w.create(ctx, ofType("small"))
		Eventually(annotations(ctx, set)).Should(Equal(small))
		Expect(w.asked()).To(BeNumerically(">=", 4))
		Expect(w.events).NotTo(Receive())
	})
})

var _ = Describe("A MachineSet that another API is in charge of", func() {
	It("is left alone until the Machine API is in charge", func(ctx SpecContext) {
		w := start(ctx, known)
		set := w.create(ctx, ofType("small"), func(s *machinev1beta1.MachineSet) {
			s.Spec.AuthoritativeAPI = machinev1beta1.MachineAuthorityClusterAPI
		})
		other := w.create(ctx, ofType("small"))
		Eventually(annotations(ctx, other)).Should(Equal(small))
		Consistently(annotations(ctx, set)).Should(BeEmpty())
		inCharge(ctx, set, machinev1beta1.MachineAuthorityMigrating)
		inCharge(ctx, set, machinev1beta1.MachineAuthorityMachineAPI)
		Eventually(annotations(ctx, set)).Should(Equal(small))
	})
})
