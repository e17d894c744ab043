package operator

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	machinev1 "github.com/openshift/api/machine/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// kinds are those of the operands.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	rbacv1.SchemeGroupVersion.WithKind("Role"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	machinev1beta1.GroupVersion.WithKind("MachineHealthCheck"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
}

// Kinds of vSphere's admission policies, which clusters have since Kubernetes 1.30, and of the
// parameters of one.
var (
	admissionPolicy        = admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy")
	admissionPolicyBinding = admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding")
	controlPlaneMachineSet = machinev1.GroupVersion.WithKind("ControlPlaneMachineSet")
)

// Kinds of the Prometheus Operator. A cluster has both or neither.
var (
	prometheusRule = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"}
	serviceMonitor = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
)

// serviceCA is the configuration of OpenShift's service CA. Clusters without that operator do not
// have the kind; discovering it needs no rights.
var serviceCA = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "ServiceCA"}

// configuration are the OpenShift kinds that inputs are read from. A cluster has all of them or
// none.
var configuration = []string{"APIServer", "FeatureGate", "Infrastructure", "Proxy"}

// CacheOptions returns what the operator's manager caches: operands, which have a label, and
// ConfigMaps of the operator's namespace.
func CacheOptions(namespace string, live client.Client) cache.Options {
	owned := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{operands.ManagedByLabel: operands.ManagedBy})}
	options := cache.Options{
		ByObject:          map[client.Object]cache.ByObject{},
		DefaultNamespaces: map[string]cache.Config{namespace: {}, metav1.NamespaceDefault: {}},
	}
	for _, kind := range watched(live) {
		selected := owned
		switch kind.Kind {
		case "Role", "RoleBinding":
		default:
			if namespaced(kind) {
				selected.Namespaces = map[string]cache.Config{namespace: {}}
			}
		}
		options.ByObject[ofKind(kind)] = selected
	}
	configMaps := map[string]cache.Config{namespace: {}}
	if serves(live, ClusterOperator) {
		configMaps[operands.ConsoleNamespace] = cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name",
			operands.Dashboard)}
	}
	options.ByObject[partial(corev1.SchemeGroupVersion.WithKind("ConfigMap"))] = cache.ByObject{Namespaces: configMaps}
	return options
}

// watched returns the kinds of the operands that the cluster has.
func watched(live client.Client) []schema.GroupVersionKind {
	all := slices.Clone(kinds)
	if serves(live, prometheusRule) {
		all = append(all, prometheusRule, serviceMonitor)
	}
	if serves(live, admissionPolicy) {
		all = append(all, admissionPolicy, admissionPolicyBinding)
	}
	return all
}

// serves reports whether the cluster has a kind.
func serves(live client.Client, kind schema.GroupVersionKind) bool {
	_, err := live.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil
}

func namespaced(kind schema.GroupVersionKind) bool {
	switch kind.Kind {
	case "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		admissionPolicy.Kind, admissionPolicyBinding.Kind:
		return false
	}
	return true
}

func ofKind(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// SetupWithManager adds the operator to a manager that was made with [CacheOptions].
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: r.options.Namespace,
		Name: operands.Deployment}}
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context,
		client.Object) []reconcile.Request {
		return []reconcile.Request{request}
	})
	// The first installation has no object yet to start with.
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request)
		return nil
	})
	made := builder.ControllerManagedBy(mgr).Named("installation").WatchesRawSource(start)
	for _, kind := range watched(r.live) {
		made = made.Watches(ofKind(kind), one)
	}
	settings := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return slices.Contains([]string{SettingsName, ImagesName, operands.TrustedCA, operands.Dashboard}, object.GetName())
	})
	made = made.WatchesMetadata(partial(corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		one, builder.WithPredicates(settings))
	for _, name := range configuration {
		kind := configv1.GroupVersion.WithKind(name)
		if !serves(r.live, kind) {
			continue // not OpenShift
		}
		made = made.WatchesMetadata(partial(kind), one)
	}
	kind, err := statusKind(r.live)
	if err != nil {
		return err
	}
	reports := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == StatusName })
	made = made.WatchesMetadata(partial(kind), one, builder.WithPredicates(reports))
	if err := made.Complete(r); err != nil {
		return fmt.Errorf("adding the operator to the manager: %w", err)
	}
	return nil
}
