//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workloads is the namespace of Pods on the Nodes.
const workloads = "default"

func called(app string) map[string]string { return map[string]string{"app": app} }

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/any"}}}
}

// guest is a Pod without a controller, on a given Node.
func guest(name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: name, Labels: called(name)},
		Spec: podSpec()}
	pod.Spec.NodeName = node
	return pod
}

// budget keeps at least minAvailable Pods of an app.
func budget(app string, minAvailable int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(minAvailable)),
			Selector:     &metav1.LabelSelector{MatchLabels: called(app)},
		},
	}
}

// spread is a Deployment whose Pods spread over separate Nodes if possible.
func spread(app string, replicas int32) *appsv1.Deployment {
	selector := &metav1.LabelSelector{MatchLabels: called(app)}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: called(app)}, Spec: podSpec()}
	template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
		NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor), // do not count a cordoned Node as an empty domain
	}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: app},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template},
	}
}

// visited creates objects and waits until these apps' Pods are ready and counted by their budgets.
func (w *world) visited(ctx context.Context, counts map[string]int, objects ...client.Object) {
	GinkgoHelper()
	w.create(ctx, objects...)
	until(ctx, patience, "the workloads run", func(ctx context.Context) error {
		var failed []error
		for app, count := range counts {
			pods, err := w.pods(ctx, app)
			if err == nil && len(pods) != count {
				err = fmt.Errorf("%d/%d Pods of %s are ready", len(pods), count, app)
			}
			failed = append(failed, err)
		}
		var budgets policyv1.PodDisruptionBudgetList
		failed = append(failed, w.client.List(ctx, &budgets, client.InNamespace(workloads)))
		for _, b := range budgets.Items {
			if counted, count := b.Status.CurrentHealthy, counts[b.Name]; counts[b.Name] > 0 && int(counted) != count {
				failed = append(failed, fmt.Errorf("the budget of %s counts %d/%d Pods", b.Name, counted, count))
			}
		}
		return errors.Join(failed...)
	})
}

// pods returns an app's ready Pods that are not being deleted.
func (w *world) pods(ctx context.Context, app string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := w.client.List(ctx, &list, client.InNamespace(workloads), client.MatchingLabels(called(app)))
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil ||
			!slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
	}), err
}

// leave removes apps: Pods, their budgets and their controllers.
func (w *world) leave(ctx context.Context, apps ...string) {
	GinkgoHelper()
	selector := "--selector=app in (" + strings.Join(apps, ",") + ")"
	for _, kind := range []string{"deployments", "poddisruptionbudgets"} {
		w.kubectl(ctx, append([]string{"delete", kind, "--namespace", workloads, "--ignore-not-found"}, apps...)...)
	}
	w.kubectl(ctx, "delete", "pods", "--namespace", workloads, "--force", "--grace-period=0", selector)
}
