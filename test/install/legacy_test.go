package install_test

import (
	"path/filepath"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// TestTheStepsOfTheOldestManuals installs as machine-api-operator's manual for kubemark says.
func TestTheStepsOfTheOldestManuals(t *testing.T) {
	long.Test(t)
	c := start(t, withoutCRDs)
	c.kubectl(t, "apply", "-k", root)
	c.kubectl(t, "apply", "-k", filepath.Join(root, "config"))
	c.kubectl(t, "wait", "--for=condition=Established", "--timeout=1m", "crd", "--all")
	c.kubectl(t, "apply", "-f", filepath.Join(root, "config", "kubemark-config-infra.yaml"))

	if err := c.plane.Client.Get(t.Context(), operatorKey, &appsv1.Deployment{}); err != nil {
		t.Error(err)
	}
	infrastructure := &configv1.Infrastructure{}
	if err := c.plane.Client.Get(t.Context(), client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		t.Fatal(err)
	}
	if got := infrastructure.Status.Platform; got != "kubemark" { //nolint:staticcheck // what the manual writes
		t.Errorf("the platform is %q", got)
	}
	credentials := client.ObjectKey{Namespace: namespace, Name: "kubemark-credentials"} // the default of a providerSpec
	if err := c.plane.Client.Get(t.Context(), credentials, &corev1.Secret{}); err != nil {
		t.Error(err)
	}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "machine.openshift.io", Version: "v1beta1", Kind: "ClusterList"},
		{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSetList"},
		{Group: "healthchecking.openshift.io", Version: "v1alpha1", Kind: "MachineHealthCheckList"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.plane.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Errorf("%s is not served: %v", kind, err)
		}
	}
}
