package install_test

import (
	"path/filepath"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

const terminationHandler = "machine-api-termination-handler"

func TestTheTerminationHandlerIsInstalled(t *testing.T) {
	long.Test(t)
	c := start(t)
	c.kubectl(t, "create", "-f", filepath.Join(root, "install", "kubernetes", "namespace.yaml"))
	c.kubectl(t, "apply", "-k", filepath.Join(root, "install", "termination-handler"))
	apart := c.daemonSet(t, namespace)
	if err := c.admits(t, apart); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("a restricted namespace admits its Pods: %v", err)
	}
	c.kubectl(t, "delete", "-k", filepath.Join(root, "install", "termination-handler"))
	c.kubectl(t, "apply", "-k", filepath.Join(root, "install", "termination-handler-namespace"))
	apart = c.daemonSet(t, terminationHandler)
	if err := c.admits(t, apart); err != nil {
		t.Errorf("its own namespace refuses its Pods: %v", err)
	}

	pod := apart.Spec.Template.Spec
	if !pod.HostNetwork || ptr.Deref(pod.AutomountServiceAccountToken, true) {
		t.Errorf("the host's network is used: %t; a token is mounted: %v", pod.HostNetwork,
			pod.AutomountServiceAccountToken)
	}
	if label, there := pod.NodeSelector["machine.openshift.io/interruptible-instance"]; !there || label != "" ||
		pod.NodeSelector[corev1.LabelOSStable] != "linux" {
		t.Errorf("it runs on the Nodes %v", pod.NodeSelector)
	}
	if tolerations := pod.Tolerations; len(tolerations) != 1 ||
		tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
		t.Errorf("it tolerates %v, want all taints", tolerations)
	}
	if strategy := apart.Spec.UpdateStrategy.RollingUpdate; strategy.MaxUnavailable.String() != "10%" {
		t.Errorf("%s of its Pods may be unavailable in an update", strategy.MaxUnavailable)
	}
	rights := pod.Containers[0].SecurityContext
	if !ptr.Deref(rights.ReadOnlyRootFilesystem, false) || ptr.Deref(rights.AllowPrivilegeEscalation, true) ||
		ptr.Deref(rights.Privileged, false) ||
		len(rights.Capabilities.Add) > 0 || len(rights.Capabilities.Drop) != 1 || rights.Capabilities.Drop[0] != "ALL" {
		t.Errorf("its rights are %+v", rights)
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if !mount.ReadOnly {
			t.Errorf("%s can be written", mount.MountPath)
		}
	}
}

func TestTheHealthCheckOfTerminationsIsAboutNothingElse(t *testing.T) {
	long.Test(t)
	c := start(t)
	c.kubectl(t, "create", "namespace", namespace)
	c.kubectl(t, "apply", "-k", filepath.Join(root, "install", "termination-handler"))
	check := &machinev1beta1.MachineHealthCheck{}
	if err := c.plane.Client.Get(t.Context(),
		client.ObjectKey{Namespace: namespace, Name: terminationHandler}, check); err != nil {
		t.Fatal(err)
	}
	spec := check.Spec
	if startup := spec.NodeStartupTimeout; startup == nil || startup.Duration != 0 {
		t.Errorf("Machines without a Node are replaced after %v, want never", startup)
	}
	if spec.MaxUnhealthy.String() != "100%" || len(spec.UnhealthyConditions) != 1 {
		t.Fatalf("maxUnhealthy is %s, the conditions are %+v", spec.MaxUnhealthy, spec.UnhealthyConditions)
	}
	want := machinev1beta1.UnhealthyCondition{Type: "Terminating", Status: corev1.ConditionTrue}
	if got := spec.UnhealthyConditions[0]; got != want {
		t.Errorf("the condition is %+v, want %+v", got, want)
	}
}

func (c *cluster) daemonSet(t *testing.T, namespace string) *appsv1.DaemonSet {
	t.Helper()
	found := &appsv1.DaemonSet{}
	if err := c.plane.Client.Get(t.Context(),
		client.ObjectKey{Namespace: namespace, Name: terminationHandler}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// admits returns why a DaemonSet's Pod is rejected, or nil.
func (c *cluster) admits(t *testing.T, of *appsv1.DaemonSet) error {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: of.Namespace, GenerateName: of.Name + "-", Labels: of.Spec.Template.Labels,
	}, Spec: of.Spec.Template.Spec}
	return c.plane.Client.Create(t.Context(), pod, client.DryRunAll)
}
