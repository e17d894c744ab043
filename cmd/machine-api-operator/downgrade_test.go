package main

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator"
	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

const newerImage = "example.org/machine-iac-operator:v2"

// newerWasHere makes what release 2.0.0 has left.
func newerWasHere(i *installation) {
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: operands.Deployment, Annotations: map[string]string{operands.VersionAnnotation: "2.0.0"},
		Labels: map[string]string{operands.ManagedByLabel: operands.ManagedBy},
	}}
	labels := map[string]string{"app.kubernetes.io/name": "machine-iac-operator", "app.kubernetes.io/component": "machine-controllers"}
	made.Spec = appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "machine-controllers", Image: newerImage}}},
		},
	}
	if err := i.plane.Client.Create(i.Context(), made); err != nil {
		i.Fatal(err)
	}
}

func TestADowngradeIsRefused(t *testing.T) {
	long.Test(t)
	i := installed(t, newerWasHere)
	i.eventually("the refusal is reported", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		for _, one := range status.Conditions {
			if one.Type == configv1.OperatorDegraded {
				return one.Status == configv1.ConditionTrue && one.Message == "Deployment "+namespace+"/"+operands.Deployment+" was applied by operator 2.0.0, which is newer "+
					"than this one, 1.0.0; install that version again, or, if this one reads its states, annotate the Deployment with "+
					operator.AllowDowngrade+"=1.0.0", err
			}
		}
		return false, err
	})
	for _, one := range i.operands() {
		if _, err := i.live(one); err == nil && one.GetKind() != "Deployment" {
			t.Errorf("%s %s was applied", one.GetKind(), one.GetName())
		}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operands.Deployment}}
	image := func() (string, error) {
		err := i.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)
		return deployment.Spec.Template.Spec.Containers[0].Image, err
	}
	allow := func(version string) {
		patch := []byte(`{"metadata":{"annotations":{"` + operator.AllowDowngrade + `":"` + version + `"}}}`)
		if err := i.plane.Client.Patch(t.Context(), deployment, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	allow("0.9.0") // which is another version
	if got, err := image(); err != nil || got != newerImage {
		t.Errorf("the image is %s (%v)", got, err)
	}
	allow("1.0.0")
	i.eventually("the version that is allowed takes over", func() (bool, error) {
		got, err := image()
		return got == "example.org/machine-iac-operator:v1" && deployment.Annotations[operands.VersionAnnotation] == "1.0.0", err
	})
	i.eventually("it is reported", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		return conditions(status) == "Available=False/Initializing Degraded=False/AsExpected Progressing=True/SyncingResources Upgradeable=True/AsExpected", err
	})
}
