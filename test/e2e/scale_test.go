//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

func aMachineSetThatIsScaled() {
	BeforeAll(func(ctx SpecContext) { w.replicas(ctx, few) })

	It("serves its scale subresource: how many are wanted, how many there are, and which", func(ctx SpecContext) {
		w.scale(ctx, few+1)
		w.settles(ctx, few+1)
		scale := w.scaleOf(ctx)
		Expect(scale.Spec.Replicas).To(BeEquivalentTo(few + 1))
		Expect(scale.Status.Replicas).To(BeEquivalentTo(few + 1))
		selector, err := labels.Parse(scale.Status.Selector)
		Expect(err).NotTo(HaveOccurred())
		var chosen machinev1beta1.MachineList
		Expect(w.client.List(ctx, &chosen, client.InNamespace(lab.Namespace),
			client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
		Expect(chosen.Items).To(HaveLen(few+1), "the selector is %q", scale.Status.Selector)
	})

	It("is scaled by a HorizontalPodAutoscaler, which reads its scale and its selector", func(ctx SpecContext) {
		autoscaler := setAutoscaler(few+2, few+2)
		w.create(ctx, autoscaler)
		DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, autoscaler)).To(Succeed()) })
		w.settles(ctx, few+2)
		// No metrics exist for Machines. That the autoscaler misses them proves that it understood the selector.
		w.autoscales(ctx, autoscaler,
			autoscalingv2.HorizontalPodAutoscalerCondition{
				Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: "SucceededGetScale",
			},
			autoscalingv2.HorizontalPodAutoscalerCondition{
				Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetResourceMetric",
			},
		)
	})

	It("reports to a cluster autoscaler how large its Machines are, none of them existing "+
		"either", func(ctx SpecContext) {
		w.scale(ctx, 0)
		w.settles(ctx, 0)
		w.sized(ctx, "4", "16384")
	})

	It("reports it again when its template changes", func(ctx SpecContext) {
		w.patchTemplate(ctx, map[string]any{"cpu": 8, "memory": "32Gi"})
		w.sized(ctx, "8", "32768")
		w.patchTemplate(ctx, map[string]any{"cpu": 4, "memory": "16Gi"})
		w.sized(ctx, "4", "16384")
	})
}

// scaleOf returns the MachineSet's scale subresource.
func (w *world) scaleOf(ctx context.Context) *autoscalingv1.Scale {
	GinkgoHelper()
	scale := &autoscalingv1.Scale{}
	path := "/apis/machine.openshift.io/v1beta1/namespaces/" + lab.Namespace + "/machinesets/" + setName + "/scale"
	Expect(json.Unmarshal([]byte(w.kubectl(ctx, "get", "--raw", path)), scale)).To(Succeed())
	return scale
}

// setAutoscaler scales the MachineSet between two sizes, to a CPU utilization of 50 %.
func setAutoscaler(least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: setName},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet", Name: setName,
			},
			MinReplicas: &least, MaxReplicas: most,
			Metrics: []autoscalingv2.MetricSpec{
				{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
					Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50),
					},
				}}},
		},
	}
}

// autoscales waits until a HorizontalPodAutoscaler has these conditions.
func (w *world) autoscales(ctx context.Context, autoscaler *autoscalingv2.HorizontalPodAutoscaler,
	wanted ...autoscalingv2.HorizontalPodAutoscalerCondition) {
	GinkgoHelper()
	until(ctx, patience, "the HorizontalPodAutoscaler has read the scale", func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(autoscaler), autoscaler); err != nil {
			return err
		}
		missing := len(wanted)
		for _, got := range autoscaler.Status.Conditions {
			for _, want := range wanted {
				if got.Type == want.Type && got.Status == want.Status && got.Reason == want.Reason {
					missing--
				}
			}
		}
		if missing > 0 {
			return fmt.Errorf("its conditions are %+v", autoscaler.Status.Conditions)
		}
		return nil
	})
}

// sized waits until the MachineSet reports this size.
func (w *world) sized(ctx context.Context, cpus, megabytes string) {
	GinkgoHelper()
	until(ctx, patience, "the MachineSet reports its size", func(ctx context.Context) error {
		set := &machinev1beta1.MachineSet{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: setName}, set); err != nil {
			return err
		}
		matches, err := And(
			HaveKeyWithValue("machine.openshift.io/vCPU", cpus),
			HaveKeyWithValue("machine.openshift.io/memoryMb", megabytes),
			HaveKeyWithValue("machine.openshift.io/GPU", "0"),
			HaveKeyWithValue("capacity.cluster-autoscaler.kubernetes.io/cpu", cpus),
			HaveKey("capacity.cluster-autoscaler.kubernetes.io/memory"),
			HaveKeyWithValue("capacity.cluster-autoscaler.kubernetes.io/labels",
				ContainSubstring("kubernetes.io/arch=amd64")),
		).Match(set.Annotations)
		if err == nil && !matches {
			err = errors.New(fmt.Sprint("its annotations are ", set.Annotations))
		}
		return err
	})
}

// patchTemplate changes the providerSpec of new Machines of the MachineSet.
func (w *world) patchTemplate(ctx context.Context, fields map[string]any) {
	GinkgoHelper()
	var patch any = on.patch(fields)
	for _, field := range []string{"value", "providerSpec", "spec", "template", "spec"} {
		patch = map[string]any{field: patch}
	}
	raw, err := json.Marshal(patch)
	Expect(err).NotTo(HaveOccurred())
	w.kubectl(ctx, "patch", "machineset", setName, "--type=merge", "--patch", string(raw))
}
