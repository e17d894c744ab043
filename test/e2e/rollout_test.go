//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

func aMachineDeployment() {
	const name, pool = "rolled", "example.com/pool"
	var former []types.UID

	read := func(ctx context.Context) *v1beta1.MachineDeployment {
		GinkgoHelper()
		deployment := &v1beta1.MachineDeployment{}
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, deployment)).To(Succeed())
		return deployment
	}
	machines := func(ctx context.Context) []machinev1beta1.Machine {
		GinkgoHelper()
		list := &machinev1beta1.MachineList{}
		Expect(w.client.List(ctx, list, client.InNamespace(lab.Namespace), client.MatchingLabels{pool: name})).To(Succeed())
		return list.Items
	}
	uids := func(ctx context.Context) (out []types.UID) {
		GinkgoHelper()
		for _, machine := range machines(ctx) {
			out = append(out, machine.UID)
		}
		slices.Sort(out)
		return out
	}
	rolledOut := func(ctx context.Context) {
		GinkgoHelper()
		until(ctx, patience, "the rollout is complete", func(ctx context.Context) error {
			deployment := read(ctx)
			progressing := meta.FindStatusCondition(deployment.Status.Conditions, v1beta1.ConditionProgressing)
			if deployment.Status.ObservedGeneration != deployment.Generation || progressing == nil ||
				progressing.Reason != v1beta1.ReasonNewMachineSetAvailable || len(machines(ctx)) != 3 {
				return fmt.Errorf("status %+v, %d Machines", deployment.Status, len(machines(ctx)))
			}
			return nil
		})
	}
	edit := func(ctx context.Context, changes ...func(map[string]any)) {
		GinkgoHelper()
		Eventually(func() error {
			deployment := read(ctx)
			changeSpec(&deployment.Spec.Template.Spec, changes...)
			return w.client.Update(ctx, deployment)
		}).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		set := w.machineSet(0)
		set.Spec.Template.Labels[pool] = name
		w.create(ctx, &v1beta1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name},
			Spec: v1beta1.MachineDeploymentSpec{
				Replicas: ptr.To[int32](3), Template: set.Spec.Template,
				Selector: metav1.LabelSelector{MatchLabels: map[string]string{pool: name}},
			},
		})
		DeferCleanup(func(ctx SpecContext) {
			w.kubectl(ctx, "delete", "machinedeployment", name)
			until(ctx, patience, "its Machines are gone", func(ctx context.Context) error {
				if left := machines(ctx); len(left) > 0 {
					return fmt.Errorf("there are %s", describe(left))
				}
				return nil
			})
		})
		rolledOut(ctx)
		former = uids(ctx)
	})

	It("changes its Machines in place where their plans allow it", func(ctx SpecContext) {
		edit(ctx, with("zone", "zone-b"))
		rolledOut(ctx)
		Expect(uids(ctx)).To(Equal(former))
		for _, machine := range machines(ctx) {
			Expect(w.node(ctx, machine.Name).Labels).To(HaveKeyWithValue("topology.kubernetes.io/zone", "zone-b"))
		}
	})

	It("replaces them where they do not", func(ctx SpecContext) {
		edit(ctx, with("cpu", 8))
		rolledOut(ctx)
		Expect(uids(ctx)).NotTo(ContainElements(former))
		for _, machine := range machines(ctx) {
			Expect(w.node(ctx, machine.Name).Status.Capacity.Cpu().String()).To(Equal("8"))
		}
	})
}
