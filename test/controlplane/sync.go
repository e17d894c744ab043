package controlplane

import (
	"context"
	"encoding/json"
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sync updates the API server's Machine from one in memory, as the Machine controller does. It skips an unchanged,
// deleted or rejected Machine, and reads the named annotations from the API server instead.
func (c *ControlPlane) Sync(ctx context.Context, machine *machinev1beta1.Machine, annotations ...string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := &machinev1beta1.Machine{}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(machine), live)
		if err != nil || live.UID != machine.UID {
			return client.IgnoreNotFound(err)
		}
		for _, name := range annotations {
			if value, ok := live.Annotations[name]; ok {
				metav1.SetMetaDataAnnotation(&machine.ObjectMeta, name, value)
			} else {
				delete(machine.Annotations, name)
			}
		}
		was := live.DeepCopy()
		live.Spec, live.Labels, live.Annotations = *machine.Spec.DeepCopy(), machine.Labels, machine.Annotations
		if !same(live, was) {
			if err = c.Client.Update(ctx, live); err != nil {
				return acceptable(err)
			}
			was = live.DeepCopy()
		}
		machine.Status.DeepCopyInto(&live.Status)
		if same(live, was) {
			return nil
		}
		return c.Client.Status().Update(ctx, live)
	})
}

// same reports whether two Machines are stored alike. It returns false if one of them cannot be encoded.
func same(one, other *machinev1beta1.Machine) bool {
	first, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
	if err != nil {
		return false
	}
	second, err := runtime.DefaultUnstructuredConverter.ToUnstructured(other)
	return err == nil && equality.Semantic.DeepEqual(first, second)
}

// acceptable returns nil if the API server rejected the object itself, otherwise the error.
func acceptable(err error) error {
	if _, unreadable := errors.AsType[*json.MarshalerError](err); unreadable || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) {
		return nil
	}
	return err
}
