//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// fleet is a MachineSet without kubelets, whose Machines get Nodes only from the tests.
type fleet struct {
	set *machinev1beta1.MachineSet
}

func (f *fleet) machines(ctx context.Context) []machinev1beta1.Machine {
	GinkgoHelper()
	var list machinev1beta1.MachineList
	labels := client.MatchingLabels(f.set.Spec.Selector.MatchLabels)
	Expect(w.client.List(ctx, &list, client.InNamespace(lab.Namespace), labels)).To(Succeed())
	return list.Items
}

// reach waits until all count Machines are in a phase, and returns them.
func (f *fleet) reach(ctx context.Context, count int, phase string) (machines []machinev1beta1.Machine) {
	GinkgoHelper()
	until(ctx, patience, fmt.Sprintf("%d Machines are %s", count, phase), func(ctx context.Context) error {
		machines = f.machines(ctx)
		reached := 0
		for _, machine := range machines {
			if phaseOf(&machine) == phase {
				reached++
			}
		}
		if reached != count || len(machines) != count {
			return errors.New(describe(machines))
		}
		return nil
	})
	return machines
}

// join simulates a Machine's kubelet: the Node has the providerID, but not the Machine's name.
func (f *fleet) join(ctx context.Context, machine *machinev1beta1.Machine) {
	GinkgoHelper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeNameOf(machine), Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{ProviderID: *machine.Spec.ProviderID},
	}
	w.create(ctx, node)
}

// alone returns a standalone Machine like those of the MachineSet.
func (f *fleet) alone(name string, changes ...func(map[string]any)) *machinev1beta1.Machine {
	GinkgoHelper()
	template := f.set.Spec.Template.DeepCopy()
	delete(template.Labels, "machine.openshift.io/cluster-api-machineset")
	machine := &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name, Labels: template.Labels},
		Spec:       template.Spec,
	}
	changeSpec(&machine.Spec, changes...)
	return machine
}

// leaves waits until nothing is left of Machines.
func (f *fleet) leaves(ctx context.Context, gone []machinev1beta1.Machine,
	instanceIsGone func(*machinev1beta1.Machine) error) {
	GinkgoHelper()
	until(ctx, patience, "nothing is left of the Machines", func(ctx context.Context) error {
		seen, err := w.census(ctx)
		if err != nil {
			return err
		}
		if left := f.machines(ctx); len(left) > 0 {
			return errors.New(describe(left))
		}
		for _, machine := range gone {
			if slices.ContainsFunc(seen.nodes, func(n corev1.Node) bool { return n.Name == nodeNameOf(&machine) }) {
				return fmt.Errorf("the Node of %s is there still", machine.Name)
			}
			if slices.ContainsFunc(seen.states,
				func(s corev1.Secret) bool { return s.Labels[observe.UIDLabel] == string(machine.UID) }) {
				return fmt.Errorf("the state of %s is there still", machine.Name)
			}
			if err := instanceIsGone(&machine); err != nil {
				return err
			}
		}
		return w.atRest()
	})
}

func nodeNameOf(machine *machinev1beta1.Machine) string { return "node-of-" + machine.Name }

func internalIPs(machine *machinev1beta1.Machine) []string {
	var found []string
	for _, address := range machine.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			found = append(found, address.Address)
		}
	}
	return found
}
