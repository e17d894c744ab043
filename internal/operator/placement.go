package operator

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

const (
	masterRole       = "node-role.kubernetes.io/master"
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
	// evictAfter is how long Pods stay on a Node that is not ready, as machine-api-operator's.
	evictAfter = 120

	requiredSCC = "openshift.io/required-scc"
	nonRootSCC  = "nonroot-v2" // the Pods' user is fixed, which restricted-v2 does not allow
	// managementWorkload assigns Pods to the CPUs that OpenShift reserves for its own. Admission
	// rejects it in a namespace that does not allow it.
	managementWorkload = "target.workload.openshift.io/management"
)

// placementOn returns where the controllers run on OpenShift: on the control plane, so that they
// can create the first workers. A hosted control plane has no Nodes in the cluster.
func placementOn(topology configv1.TopologyMode) operands.Placement {
	placed := operands.Placement{
		Annotations: map[string]string{requiredSCC: nonRootSCC},
		Tolerations: []corev1.Toleration{
			{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: controlPlaneRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists},
			evicted(corev1.TaintNodeNotReady),
			evicted(corev1.TaintNodeUnreachable),
		},
	}
	if topology != configv1.ExternalTopologyMode {
		placed.NodeSelector = map[string]string{masterRole: ""}
	}
	return placed
}

func evicted(taint string) corev1.Toleration {
	return corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: ptr.To[int64](evictAfter)}
}

// tune applies the administrator's settings. The annotation for workload partitioning is the
// one of the operator's own Pod: if that Pod was admitted with it, the controllers' are.
func (r *Reconciler) tune(ctx context.Context, in *operands.Inputs, settings *corev1.ConfigMap) error {
	if err := tuned(settings, in); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", r.options.Namespace, SettingsName, err)
	}
	if in.Placement.Annotations == nil || r.options.PodName == "" {
		return nil
	}
	pod := &corev1.Pod{}
	if _, err := r.read(ctx, r.own(r.options.PodName), pod); err != nil {
		return err
	}
	if effect := pod.Annotations[managementWorkload]; effect != "" {
		in.Placement.Annotations[managementWorkload] = effect
	}
	return nil
}
