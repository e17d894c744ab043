package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

var (
	machines    = schema.GroupVersionResource{Group: "machine.openshift.io", Version: "v1beta1", Resource: "machines"}
	mcmMachines = schema.GroupVersionResource{Group: "machine.sapcloud.io", Version: "v1alpha1", Resource: "machines"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// store reads and writes the Machines and Secrets of the driver.
type store struct {
	client dynamic.Interface
}

// get returns a Machine, or nil.
func (s store) get(ctx context.Context, namespace, name string) (*machine, error) {
	object, err := s.client.Resource(machines).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Machine %s: %w", name, err)
	}
	return read(object)
}

// ofClass returns the Machines of a class.
func (s store) ofClass(ctx context.Context, class *mcm.MachineClass) ([]*machine, error) {
	list, err := s.client.Resource(machines).Namespace(class.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: labelManagedBy + "=" + managedBy})
	if err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	var found []*machine
	for i := range list.Items {
		if list.Items[i].GetAnnotations()[annotationClass] != class.Name {
			continue
		}
		m, err := read(&list.Items[i])
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, nil
}

// deleted reports whether an MCM Machine is known to be deleted.
func (s store) deleted(ctx context.Context, of *mcm.Machine) bool {
	object, err := s.client.Resource(mcmMachines).Namespace(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return object.GetUID() != of.UID || object.GetDeletionTimestamp() != nil
}

// apply creates or updates the Machine and Secrets, and returns the Machine. An earlier Machine of
// that name is deleted first. A Machine with an instance, or with a run that creates one, stays
// unchanged.
func (s store) apply(ctx context.Context, w *desired) (*machine, error) {
	found, err := s.get(ctx, w.owner.Namespace, w.owner.Name)
	if err != nil {
		return nil, err
	}
	if found != nil && (!found.belongsTo(w.owner) || found.DeletionTimestamp != nil) {
		if err := s.release(ctx, found); err != nil {
			return nil, err
		}
		if _, err := s.waitUntilGone(ctx, found); err != nil {
			return nil, fmt.Errorf("waiting for an earlier Machine %s to be deleted: %w", found.Name, err)
		}
		found = nil
	}
	if err := s.applyCredentials(ctx, w.credentials); err != nil {
		return nil, err
	}
	if err := s.applyUserData(ctx, w, found); err != nil {
		return nil, err
	}
	if found == nil {
		if found, err = s.create(ctx, w); err != nil {
			return nil, err
		}
	} else if err := s.update(ctx, w, found); err != nil {
		return nil, err
	}
	return found, s.handOver(ctx, w, found)
}

func (s store) create(ctx context.Context, w *desired) (*machine, error) {
	object, err := s.client.Resource(machines).Namespace(w.owner.Namespace).Create(ctx, w.object(), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating Machine %s: %w", w.owner.Name, err)
	}
	m, err := read(object)
	if err == nil {
		m.fresh = true
	}
	return m, err
}

// update gives a Machine without an instance the current providerSpec of its class.
func (s store) update(ctx context.Context, w *desired, found *machine) error {
	if found.Spec.ProviderID != "" || found.changing() ||
		reflect.DeepEqual(found.Spec.ProviderSpec.Value, normal(w.providerSpec)) {
		return nil
	}
	// A merge would keep fields that the class no longer has.
	patch := []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": found.UID},
		{"op": "add", "path": "/spec/providerSpec/value", "value": w.providerSpec},
	}
	object, err := s.patch(ctx, machines, found.Namespace, found.Name, types.JSONPatchType, patch)
	if err != nil {
		return fmt.Errorf("updating the providerSpec of Machine %s: %w", found.Name, err)
	}
	updated, err := read(object)
	if err != nil {
		return err
	}
	*found = *updated
	found.fresh = true
	return nil
}

// normal returns a value in the form that the API server returns.
func normal(value map[string]any) map[string]any {
	raw, err := json.Marshal(value)
	out := map[string]any{}
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return value
	}
	return out
}

// applyUserData creates the Secret with the user data. MCM's Machine owns it until the driver's
// Machine exists, so that nothing is left behind if this process dies in between. An existing
// Secret stays: the instance may have been created with it.
func (s store) applyUserData(ctx context.Context, w *desired, found *machine) error {
	if w.userData == nil {
		return nil
	}
	object, err := toUnstructured(w.userData)
	if err != nil {
		return err
	}
	owner := ownedBy("machine.sapcloud.io/v1alpha1", w.owner.Name, string(w.owner.UID))
	if found != nil {
		owner = ownedBy("machine.openshift.io/v1beta1", found.Name, string(found.UID))
	}
	object.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
	client := s.client.Resource(secrets).Namespace(w.userData.Namespace)
	_, err = client.Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return wrap(err, "creating Secret "+w.userData.Name)
	}
	if found != nil {
		return nil
	}
	// It is left from a crash, or from an earlier Machine of this name.
	_, err = s.patch(ctx, secrets, w.userData.Namespace, w.userData.Name, types.MergePatchType, map[string]any{
		"metadata": map[string]any{"ownerReferences": []any{owner},
			"labels": map[string]any{labelUsable: w.userData.Labels[labelUsable]}}, "data": object.Object["data"],
	})
	return wrap(err, "updating Secret "+w.userData.Name)
}

// handOver makes the Machine the owner of its user data, which it needs until its instance is gone.
func (s store) handOver(ctx context.Context, w *desired, m *machine) error {
	if w.userData == nil {
		return nil
	}
	_, err := s.patch(ctx, secrets, w.userData.Namespace, w.userData.Name, types.MergePatchType, map[string]any{
		"metadata": map[string]any{
			"ownerReferences": []any{ownedBy("machine.openshift.io/v1beta1", m.Name, string(m.UID))},
			"labels":          map[string]any{labelUsable: w.userData.Labels[labelUsable]},
		},
	})
	return wrap(err, "transferring Secret "+w.userData.Name+" to its Machine")
}

// refreshCredentials updates the Secret that the driver has written for a class, if any.
func (s store) refreshCredentials(ctx context.Context, class *mcm.MachineClass, secret *corev1.Secret) error {
	_, wanted, err := credentialsOf(class, secret)
	if err != nil {
		return err
	}
	return s.applyCredentials(ctx, wanted)
}

// applyCredentials creates or updates the Secret with a class's credentials.
func (s store) applyCredentials(ctx context.Context, wanted *corev1.Secret) error {
	if wanted == nil {
		return nil
	}
	object, err := toUnstructured(wanted)
	if err != nil {
		return err
	}
	client := s.client.Resource(secrets).Namespace(wanted.Namespace)
	found, err := client.Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, object, metav1.CreateOptions{})
		return wrap(err, "creating Secret "+wanted.Name)
	}
	if err != nil {
		return wrap(err, "reading Secret "+wanted.Name)
	}
	if found.GetLabels()[labelManagedBy] != managedBy {
		return fmt.Errorf("the Secret %s does not belong to the driver: it lacks label %s=%s; rename it, because the driver "+
			"stores credentials under that name", wanted.Name, labelManagedBy, managedBy)
	}
	labels := found.GetLabels()
	if equality.Semantic.DeepEqual(found.Object["data"], object.Object["data"]) &&
		labels[labelUsable] == wanted.Labels[labelUsable] {
		return nil
	}
	labels[labelUsable] = wanted.Labels[labelUsable]
	found.SetLabels(labels)
	found.Object["data"] = object.Object["data"]
	_, err = client.Update(ctx, found, metav1.UpdateOptions{})
	return wrap(err, "updating Secret "+wanted.Name)
}

// release deletes a Machine and removes the hook that blocks its instance's deletion.
func (s store) release(ctx context.Context, m *machine) error {
	err := s.client.Resource(machines).Namespace(m.Namespace).Delete(ctx, m.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(m.UID))})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	kept := []lifecycleHook{}
	for _, hook := range m.Spec.LifecycleHooks.PreTerminate {
		if hook.Name != hookName {
			kept = append(kept, hook)
		}
	}
	if len(kept) == len(m.Spec.LifecycleHooks.PreTerminate) {
		return nil
	}
	_, err = s.patch(ctx, machines, m.Namespace, m.Name, types.JSONPatchType, []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": m.UID},
		{"op": "add", "path": "/spec/lifecycleHooks/preTerminate", "value": kept},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrap(err, "removing the hook from Machine "+m.Name)
}

func (s store) patch(ctx context.Context, kind schema.GroupVersionResource, namespace, name string,
	how types.PatchType, patch any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return s.client.Resource(kind).Namespace(namespace).Patch(ctx, name, how, raw, metav1.PatchOptions{})
}

// errReplaced means that a Machine was removed during a wait.
var errReplaced = errors.New("the Machine was removed during the wait")

// waitFor waits until done, or until done returns an error.
func (s store) waitFor(ctx context.Context, m *machine, done func(*machine) (bool, error)) (*machine, error) {
	last := m
	if !m.fresh {
		if ok, err := done(m); err != nil || ok {
			return m, err
		}
	}
	err := s.follow(ctx, m, func(kind watch.EventType, now *machine) (bool, error) {
		if kind == watch.Deleted || now.UID != m.UID {
			return false, errReplaced
		}
		now.fresh = m.fresh && now.ResourceVersion == m.ResourceVersion
		last = now
		return done(now)
	})
	if ctx.Err() != nil && err != nil {
		err = errors.New(last.because())
	}
	return last, err
}

// waitUntilGone waits until a Machine is gone, and returns its last known state. The error says why
// its instance cannot be deleted if only others can change that.
func (s store) waitUntilGone(ctx context.Context, m *machine) (*machine, error) {
	last := m
	err := s.follow(ctx, m, func(kind watch.EventType, now *machine) (bool, error) {
		if kind == watch.Deleted || now.UID != m.UID {
			return true, nil
		}
		last = now
		// The Machine's status may predate its deletion.
		if now.DeletionTimestamp == nil || now.Status.Phase != phaseDeleting {
			return false, nil
		}
		return false, now.failure()
	})
	if ctx.Err() != nil && err != nil {
		err = errors.New(last.because())
	}
	return last, err
}

// follow calls done for a Machine now and after each change, until done returns true or an error,
// or the context ends.
func (s store) follow(ctx context.Context, m *machine, done func(watch.EventType, *machine) (bool, error)) error {
	one := fields.OneTermEqualSelector(metav1.ObjectNameField, m.Name).String()
	client := s.client.Resource(machines).Namespace(m.Namespace)
	source := &cache.ListWatch{
		ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = one
			return client.List(ctx, o)
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = one
			return client.Watch(ctx, o)
		},
	}
	finished := false
	absent := func(all cache.Store) (bool, error) {
		if len(all.List()) > 0 {
			return false, nil
		}
		ok, err := done(watch.Deleted, m)
		finished = ok
		return ok || err != nil, err
	}
	_, err := watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, absent,
		func(event watch.Event) (bool, error) {
			object, ok := event.Object.(*unstructured.Unstructured)
			if finished || !ok {
				return finished, nil
			}
			now, err := read(object)
			if err != nil {
				return false, err
			}
			return done(event.Type, now)
		})
	return err
}

// toUnstructured converts a Secret for the dynamic client.
func toUnstructured(secret *corev1.Secret) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return nil, fmt.Errorf("encoding Secret %s: %w", secret.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion("v1")
	object.SetKind("Secret")
	return object, nil
}

func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
