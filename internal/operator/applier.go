package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManager is the operator's field manager.
const fieldManager = "machine-api-operator"

// applier makes objects match the operator's manifests, with server-side apply only. It replaces
// fields that others have set, removes fields that others have added to an object's definition, and
// leaves fields to others that belong to them.
type applier struct {
	client client.Client
	// reverts, if set, is called with the managers whose changes of an object are reverted.
	reverts func(object *unstructured.Unstructured, by []string)
}

// apply applies an object and returns the result. before is the last known object, or nil if it did
// not exist. If that is stale in a way that matters, the error is a conflict.
func (a applier) apply(ctx context.Context, object, before *unstructured.Unstructured) (*unstructured.Unstructured,
	error) {
	desired := object.DeepCopy()
	if before == nil {
		return a.send(ctx, desired)
	}
	if scaled(before) {
		unstructured.RemoveNestedField(desired.Object, "spec", "replicas")
	}
	if entries, by := takeOver(before); len(by) > 0 {
		if err := a.own(ctx, before, entries); err != nil {
			return nil, err
		}
		if a.reverts != nil {
			a.reverts(before, by)
		}
	}
	live, err := a.send(ctx, desired)
	if immutable(err) {
		return a.replace(ctx, object, before)
	}
	return live, err
}

// immutable reports whether an object was rejected because it differs in an immutable field: the
// selector of a Deployment, the role of a binding.
func immutable(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsInvalid(err) && status.ErrStatus.Details != nil &&
		slices.ContainsFunc(status.ErrStatus.Details.Causes, func(cause metav1.StatusCause) bool {
			return strings.Contains(cause.Message, "field is immutable") ||
				strings.Contains(cause.Message, "cannot change roleRef")
		})
}

// replace deletes the known object and creates it again.
func (a applier) replace(ctx context.Context, object, before *unstructured.Unstructured) (*unstructured.Unstructured,
	error) {
	seen := before.GetUID()
	err := a.client.Delete(ctx, before.DeepCopy(), client.Preconditions{UID: &seen},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("deleting %s, which has another value in a field that cannot be changed: %w",
			nameOf(object), err)
	}
	return a.send(ctx, object.DeepCopy())
}

func (a applier) send(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := desired.DeepCopy()
	err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(live), client.FieldOwner(fieldManager),
		client.ForceOwnership)
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", nameOf(desired), err)
	}
	return live, nil
}

// own transfers fields that others have added to the operator, so that the next apply, which does
// not list them, removes them.
func (a applier) own(ctx context.Context, before *unstructured.Unstructured, entries []any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": before.GetResourceVersion(),
		"managedFields": entries}})
	if err != nil {
		return fmt.Errorf("taking over fields of %s: %w", nameOf(before), err)
	}
	// The field manager of this request owns nothing by it: it changes no field but managedFields.
	if err := a.client.Patch(ctx, before.DeepCopy(), client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("taking over fields that others have added to %s: %w", nameOf(before), err)
	}
	return nil
}

// nameOf returns the object's name for messages.
func nameOf(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if namespace := object.GetNamespace(); namespace != "" {
		return kind + " " + namespace + "/" + object.GetName()
	}
	return kind + " " + object.GetName()
}

// replicas returns the replicas of an object's spec.
func replicas(object *unstructured.Unstructured) int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
	switch number := value.(type) {
	case int64:
		return number
	case float64:
		return int64(number)
	}
	return 0
}
