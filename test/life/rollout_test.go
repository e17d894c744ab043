//go:build life

package life

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	rolloutLabel = "example.com/rollout"
	rolledSize   = 2
)

// rolledOut has a MachineDeployment of its own, beside the set.
func rolledOut(w *world, t *testing.T) {
	template := w.set.Spec.Template.DeepCopy()
	delete(template.Labels, "machine.openshift.io/cluster-api-machineset")
	template.Labels[rolloutLabel] = "life"
	d := &v1beta1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: "rolled"},
		Spec: v1beta1.MachineDeploymentSpec{
			Replicas: ptr.To[int32](rolledSize), Template: *template,
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{rolloutLabel: "life"}},
		},
	}
	if err := w.client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	made := w.rollout(t, d)
	w.roll(t, d, w.change)
	if changed := w.rollout(t, d); !slices.Equal(changed, made) {
		t.Errorf("the instances are %v, want those of before, %v", changed, made)
	}
	w.roll(t, d, w.refused)
	for _, id := range w.rollout(t, d) {
		if slices.Contains(made, id) {
			t.Errorf("instance %s is there still", id)
		}
	}
	names := w.names
	w.must(t, "delete", "machinedeployment", d.Name, "--wait=false")
	for _, name := range names {
		if machine, err := w.get(t.Context(), name); client.IgnoreNotFound(err) != nil || err == nil && machine.Labels[rolloutLabel] == "" {
			continue
		}
		w.gone(t, name)
	}
}

// roll changes the providerSpec of a MachineDeployment.
func (w *world) roll(t *testing.T, d *v1beta1.MachineDeployment, how func(map[string]any)) {
	t.Helper()
	w.until(t, "the MachineDeployment is edited", func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		return errors.Join(change(&d.Spec.Template.Spec, how), w.client.Update(ctx, d))
	})
}

// rollout waits until a rollout is complete, plays the kubelets meanwhile, and returns the IDs of the instances.
func (w *world) rollout(t *testing.T, d *v1beta1.MachineDeployment) (ids []string) {
	t.Helper()
	w.until(t, "the rollout is complete", func(ctx context.Context) error {
		var list machinev1beta1.MachineList
		err := errors.Join(w.client.Get(ctx, client.ObjectKeyFromObject(d), d),
			w.client.List(ctx, &list, client.InNamespace(lab.Namespace), client.MatchingLabels{rolloutLabel: "life"}))
		ids = nil
		for i := range list.Items {
			machine := &list.Items[i]
			w.known(machine.Name)
			err = errors.Join(err, w.runs(ctx, machine))
			ids = append(ids, ptr.Deref(machine.Spec.ProviderID, ""))
		}
		progressing := meta.FindStatusCondition(d.Status.Conditions, v1beta1.ConditionProgressing)
		if err == nil && (len(ids) != rolledSize || d.Status.ObservedGeneration != d.Generation || progressing == nil ||
			progressing.Reason != v1beta1.ReasonNewMachineSetAvailable) {
			err = fmt.Errorf("the MachineDeployment is %+v", d.Status)
		}
		return err
	})
	slices.Sort(ids)
	return ids
}
