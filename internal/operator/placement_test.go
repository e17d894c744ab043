package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// Only masters exist while a cluster is installed.
func TestOnOpenShiftTheControllersRunOnMasters(t *testing.T) {
	want := operands.Placement{
		NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""},
		Annotations:  map[string]string{"openshift.io/required-scc": "nonroot-v2"},
		Tolerations: []corev1.Toleration{
			{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists},
			{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](120)},
			{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](120)},
		},
	}
	for _, topology := range []configv1.TopologyMode{"", configv1.HighlyAvailableTopologyMode, configv1.SingleReplicaTopologyMode} {
		if diff := cmp.Diff(want, placementOn(topology)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", topology, diff)
		}
	}
	want.NodeSelector = nil // no master is a Node of the cluster
	if diff := cmp.Diff(want, placementOn(configv1.ExternalTopologyMode)); diff != "" {
		t.Errorf("hosted control plane (-want +got):\n%s", diff)
	}
}

func TestSettingsReplaceWhereTheControllersRun(t *testing.T) {
	for _, on := range []operands.Placement{{}, placementOn(configv1.HighlyAvailableTopologyMode)} {
		got := on
		settings := &corev1.ConfigMap{Data: map[string]string{
			"nodeSelector": "node-role.kubernetes.io/control-plane: \"\"\n", "tolerations": `[{"key":"infra","operator":"Exists"}]`,
		}}
		place := func() error {
			in := operands.Inputs{Placement: got}
			err := tuned(settings, &in)
			got = in.Placement
			return err
		}
		if err := place(); err != nil {
			t.Fatal(err)
		}
		want := operands.Placement{Annotations: on.Annotations, NodeSelector: map[string]string{"node-role.kubernetes.io/control-plane": ""},
			Tolerations: []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		settings.Data = map[string]string{"nodeSelector": "{}", "tolerations": ""}
		if err := place(); err != nil || len(got.NodeSelector)+len(got.Tolerations) > 0 {
			t.Errorf("empty settings leave %v: %v", got, err)
		}
	}
}

// A namespace that does not allow the workload type rejects Pods with the annotation.
func TestWorkloadPartitioningIsThatOfTheOperatorsPod(t *testing.T) {
	const effect = `{"effect": "PreferredDuringScheduling"}`
	for _, annotations := range []map[string]string{nil, {managementWorkload: effect}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "operator", Annotations: annotations}}
		r := New(Options{Namespace: "ns", PodName: "operator", Live: fake.NewClientBuilder().WithObjects(client.Object(pod)).Build()})
		in := operands.Inputs{Placement: placementOn("")}
		if err := r.tune(t.Context(), &in, &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		if got, set := in.Placement.Annotations[managementWorkload]; set != (annotations != nil) || got != annotations[managementWorkload] {
			t.Errorf("with %v: got %q", annotations, got)
		}
		in = operands.Inputs{}
		if err := r.tune(t.Context(), &in, &corev1.ConfigMap{}); err != nil || in.Placement.Annotations != nil {
			t.Errorf("elsewhere: %v, %v", in.Placement, err)
		}
	}
}
