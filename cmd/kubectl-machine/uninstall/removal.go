package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/install"
	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

const (
	operatorName = "machine-api-operator"
	nameLabel    = "app.kubernetes.io/name"
	ownName      = "machine-iac-operator"
	// podInterval is how often Pods are looked at that have to end.
	podInterval = time.Second
)

// removal removes an installation.
type removal struct {
	live      client.Client
	namespace string
	dryRun    string
	// purge says that there may be nothing but remains.
	purge  bool
	out    io.Writer
	errOut io.Writer

	// operator is the operator's Deployment; nil where it is gone already.
	operator *unstructured.Unstructured
	// operands are what it has applied, own what it consists of besides its Deployment.
	operands, own []*unstructured.Unstructured
}

// find reads what to remove. It returns an error if it is not this operator's.
func (r *removal) find(ctx context.Context) error {
	deployment := object(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, r.namespace,
		operatorName)
	found, err := r.get(ctx, deployment)
	if err != nil {
		return err
	}
	if found {
		if err := removable(deployment); err != nil {
			return err
		}
		r.operator = deployment
		r.warn()
	}
	all, err := operands.All(install.FS, r.namespace)
	if err != nil {
		return err
	}
	slices.Reverse(all) // webhooks first, then what serves them, then its permissions
	if r.operands, err = r.existing(ctx, all, true); err != nil {
		return err
	}
	// Cluster-scoped objects have the same names wherever the operator is installed: the namespace
	// tells whose they are.
	here := slices.ContainsFunc(r.operands,
		func(one *unstructured.Unstructured) bool { return one.GetNamespace() == r.namespace })
	if r.operator == nil && !here && !r.purge {
		return fmt.Errorf("there is no Deployment %s and nothing that it has installed in the namespace %s; name the namespace of the installation, such as -n openshift-machine-api",
			operatorName, r.namespace)
	}
	own := []*unstructured.Unstructured{object(schema.GroupVersionKind{Group: "machine-iac.io", Version: "v1alpha1",
		Kind: "MachineAPIOperator"}, "", "machine-api")}
	if r.operator != nil { // otherwise an operator elsewhere may own objects of the same names
		own = append(own,
			object(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterOperator"},
				"", "machine-api"))
		manifests, err := operands.Manifests(install.Operator, r.namespace)
		if err != nil {
			return err
		}
		slices.Reverse(manifests)
		own = append(own, slices.DeleteFunc(manifests,
			func(one *unstructured.Unstructured) bool { return one.GetKind() == "Deployment" })...)
	}
	// What the Pods have made for themselves; the next ones make it again.
	for _, name := range []string{operatorName, "machine-iac-controllers-leader"} {
		own = append(own, object(coordinationv1.SchemeGroupVersion.WithKind("Lease"), r.namespace, name))
	}
	own = append(own, object(corev1.SchemeGroupVersion.WithKind("Secret"), r.namespace, "machine-iac-webhook-cert"))
	r.own, err = r.existing(ctx, own, false)
	return err
}

// removable returns an error unless the Deployment is this operator's and nothing would restore it.
func removable(deployment *unstructured.Unstructured) error {
	if deployment.GetLabels()[nameLabel] != ownName {
		return fmt.Errorf("the Deployment %s/%s lacks the label %s=%s: it is another operator, such as OpenShift's own; nothing was removed",
			deployment.GetNamespace(), operatorName, nameLabel, ownName)
	}
	for _, owner := range deployment.GetOwnerReferences() {
		return fmt.Errorf("the Deployment %s/%s belongs to %s %s, which would restore it: delete that first, with its Subscription if it has one, and repeat the command; nothing was removed",
			deployment.GetNamespace(), operatorName, owner.Kind, owner.Name)
	}
	return nil
}

// warn reports what else tracks the installation.
func (r *removal) warn() {
	if release := r.operator.GetAnnotations()["meta.helm.sh/release-name"]; release != "" {
		fmt.Fprintf(r.errOut, "note: Helm keeps a record of the release %s; remove it with 'helm uninstall %s' afterwards\n",
			release, release)
	}
	for name := range r.operator.GetAnnotations() {
		if strings.HasPrefix(name, "include.release.openshift.io/") {
			fmt.Fprintln(r.errOut,
				"warning: the cluster-version operator restores what it has applied, unless spec.overrides of the ClusterVersion has it unmanaged")
			return
		}
	}
}

// existing returns those objects that there are; only those that the operator has applied where
// that is wanted.
func (r *removal) existing(ctx context.Context, objects []*unstructured.Unstructured,
	applied bool) ([]*unstructured.Unstructured, error) {
	var existing []*unstructured.Unstructured
	for _, one := range objects {
		found := object(one.GroupVersionKind(), one.GetNamespace(), one.GetName())
		there, err := r.get(ctx, found)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		if applied && found.GetLabels()[operands.ManagedByLabel] != operands.ManagedBy {
			fmt.Fprintf(r.errOut, "note: %s stays, since the operator has not made it\n", named(found))
			continue
		}
		existing = append(existing, found)
	}
	return existing, nil
}

// get reads an optional object of an API that the cluster may not have.
func (r *removal) get(ctx context.Context, into *unstructured.Unstructured) (bool, error) {
	err := r.live.Get(ctx, client.ObjectKeyFromObject(into), into)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", named(into), err)
	}
	return true, nil
}

// run removes everything. It removes the operator's Deployment last, so that the command can be
// repeated.
func (r *removal) run(ctx context.Context) error {
	if r.operator != nil {
		if err := r.stop(ctx); err != nil {
			return err
		}
	}
	var rest, workloads []*unstructured.Unstructured
	for _, one := range r.operands {
		switch kind := one.GetKind(); {
		case strings.HasSuffix(kind, "WebhookConfiguration"):
			if err := r.remove(ctx, one); err != nil {
				return err
			}
		case kind == "Deployment" || kind == "DaemonSet":
			workloads = append(workloads, one)
		default:
			rest = append(rest, one)
		}
	}
	for _, one := range workloads {
		if err := r.remove(ctx, one); err != nil {
			return err
		}
	}
	// Remove the Pods' permissions after the Pods: they save the states of their runs until they exit.
	for _, one := range workloads {
		if err := r.ended(ctx, one); err != nil {
			return err
		}
	}
	for _, one := range slices.Concat(rest, r.own) {
		if err := r.remove(ctx, one); err != nil {
			return err
		}
	}
	if r.operator == nil {
		return nil
	}
	return r.remove(ctx, r.operator)
}

// stop stops the operator, which would restore what is removed.
func (r *removal) stop(ctx context.Context) error {
	if r.dryRun != dryRunClient {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
		var options []client.PatchOption
		if r.dryRun == dryRunServer {
			options = append(options, client.DryRunAll)
		}
		if err := r.live.Patch(ctx, r.operator.DeepCopy(), patch, options...); err != nil {
			return fmt.Errorf("stopping the operator: %w; nothing was removed", err)
		}
	}
	r.report(r.operator, "scaled")
	return r.ended(ctx, r.operator)
}

// ended waits until the Pods of a Deployment or DaemonSet are gone.
func (r *removal) ended(ctx context.Context, of *unstructured.Unstructured) error {
	if r.dryRun != dryRunNone {
		return nil
	}
	selected, _, err := unstructured.NestedStringMap(of.Object, "spec", "selector", "matchLabels")
	if err != nil || len(selected) == 0 {
		return fmt.Errorf("%s has no labels that select its Pods (%w)", named(of), err)
	}
	var left []string
	err = wait.PollUntilContextCancel(ctx, podInterval, true, func(ctx context.Context) (bool, error) {
		pods := metadataList("Pod")
		if err := r.live.List(ctx, pods, client.InNamespace(r.namespace),
			client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(selected)}); err != nil {
			return false, fmt.Errorf("listing the Pods of %s: %w", named(of), err)
		}
		left = nil
		for i := range pods.Items {
			left = append(left, pods.Items[i].Name)
		}
		return len(left) == 0, nil
	})
	if err != nil && len(left) > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the Pods of %s have not ended in time: %s; repeat the command to go on", named(of),
			strings.Join(left, ", "))
	}
	return err
}

// remove deletes an object, and says so as kubectl does.
func (r *removal) remove(ctx context.Context, one *unstructured.Unstructured) error {
	if r.dryRun != dryRunClient {
		uid := one.GetUID()
		options := []client.DeleteOption{client.Preconditions{UID: &uid},
			client.PropagationPolicy(metav1.DeletePropagationBackground)}
		if r.dryRun == dryRunServer {
			options = append(options, client.DryRunAll)
		}
		if err := r.live.Delete(ctx, one.DeepCopy(), options...); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w; repeat the command to go on", named(one), err)
		}
	}
	r.report(one, "deleted")
	return nil
}

func (r *removal) report(one *unstructured.Unstructured, what string) {
	suffix := ""
	switch r.dryRun {
	case dryRunClient:
		suffix = " (dry run)"
	case dryRunServer:
		suffix = " (server dry run)"
	}
	fmt.Fprintf(r.out, "%s %s%s\n", named(one), what, suffix)
}

func object(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

// named returns how kubectl calls an object.
func named(one client.Object) string {
	kind := one.GetObjectKind().GroupVersionKind()
	name := strings.ToLower(kind.Kind)
	if kind.Group != corev1.GroupName {
		name += "." + kind.Group
	}
	return name + "/" + one.GetName()
}
