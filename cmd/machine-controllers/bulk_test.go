package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatNoControllerReadsIsNotKept(t *testing.T) {
	node := &corev1.Node{}
	node.Name, node.ManagedFields = "n", []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example/app:v1"}}}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	node.Status.Allocatable, node.Status.NodeInfo.KubeletVersion = node.Status.Capacity, "v1.36.3"
	ahead := metav1.NewTime(time.Now().Add(time.Hour))
	want := corev1.NodeStatus{
		VolumesAttached: []corev1.AttachedVolume{{Name: "v"}},
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
		Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			{Type: "Skewed", Status: corev1.ConditionTrue, LastTransitionTime: ahead, LastHeartbeatTime: ahead},
		},
	}
	beating := want.DeepCopy().Conditions
	beating[0].LastHeartbeatTime = metav1.Now()
	node.Status.VolumesAttached, node.Status.Addresses, node.Status.Conditions = want.VolumesAttached, want.Addresses, beating
	kept, err := withoutBulk(node)
	if err != nil {
		t.Fatal(err)
	}
	got := kept.(*corev1.Node)
	if got.Name != "n" || len(got.ManagedFields) > 0 || !equality.Semantic.DeepEqual(got.Status, want) {
		t.Errorf("kept is %+v, want the Node without managed fields, and of its status what controllers read", got)
	}
}
