package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// endRuns kills the processes of runs that managers left.
func (r *round) endRuns() {
	running, err := r.running()
	if err != nil {
		return
	}
	for _, process := range running {
		_ = syscall.Kill(process.PID, syscall.SIGKILL) // it may have ended
	}
}

// removeObjects removes all Machines, states and Nodes, and their finalizers.
func (r *round) removeObjects(ctx context.Context) error {
	var pools v1beta1.MachineDeploymentList
	var sets machinev1beta1.MachineSetList
	var machines machinev1beta1.MachineList
	var states corev1.SecretList
	var nodes corev1.NodeList
	inNamespace := client.InNamespace(lab.Namespace)
	err := errors.Join(
		r.client.List(ctx, &pools, inNamespace), r.client.List(ctx, &sets, inNamespace),
		r.client.List(ctx, &machines, inNamespace),
		r.client.List(ctx, &states, inNamespace, client.HasLabels{observe.RoleLabel}), r.client.List(ctx, &nodes),
	)
	if err != nil {
		return err
	}
	var objects []client.Object
	for i := range pools.Items {
		objects = append(objects, &pools.Items[i])
	}
	for i := range sets.Items {
		objects = append(objects, &sets.Items[i])
	}
	for i := range machines.Items {
		objects = append(objects, &machines.Items[i])
	}
	for i := range states.Items {
		objects = append(objects, &states.Items[i])
	}
	for i := range nodes.Items {
		objects = append(objects, &nodes.Items[i])
	}
	var failed []error
	for _, object := range objects {
		failed = append(failed, r.removeByForce(ctx, object))
	}
	if len(objects) > 0 {
		failed = append(failed, fmt.Errorf("%d objects were there", len(objects))) // repeat until none is left
	}
	return errors.Join(failed...)
}

// removeByForce deletes an object and removes its finalizers.
func (w *world) removeByForce(ctx context.Context, object client.Object) error {
	if err := client.IgnoreNotFound(w.client.Delete(ctx, object, client.GracePeriodSeconds(0))); err != nil {
		return err
	}
	if len(object.GetFinalizers()) == 0 {
		return nil
	}
	noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(w.client.Patch(ctx, object, noFinalizers))
}

// stateSecrets returns the Secrets with a Machine's state, the head last.
func (w *world) stateSecrets(ctx context.Context, machine string) ([]corev1.Secret, error) {
	var states corev1.SecretList
	err := w.client.List(ctx, &states, client.InNamespace(lab.Namespace), client.HasLabels{observe.RoleLabel},
		client.MatchingLabels{observe.UIDLabel: machine})
	slices.SortStableFunc(states.Items, func(a, b corev1.Secret) int {
		rank := func(s corev1.Secret) int {
			if s.Labels[observe.RoleLabel] == "head" {
				return 1
			}
			return 0
		}
		return rank(a) - rank(b)
	})
	return states.Items, err
}
