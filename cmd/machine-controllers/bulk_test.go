package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatNoControllerReadsIsNotKept(t *testing.T) {
	node := &corev1.Node{}
	node.Name, node.ManagedFields = "n", []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example/app:v1"}}}
	node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}}
	kept, err := withoutBulk(node)
	if err != nil {
		t.Fatal(err)
	}
	got := kept.(*corev1.Node)
	if got.Name != "n" || len(got.ManagedFields) > 0 || len(got.Status.Images) > 0 || len(got.Status.VolumesAttached) != 1 {
		t.Errorf("kept is %+v, want the Node without managed fields and images", got)
	}
}
