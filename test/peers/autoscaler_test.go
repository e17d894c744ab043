//go:build peers

package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

const (
	minSize = "machine.openshift.io/cluster-api-autoscaler-node-group-min-size"
	maxSize = "machine.openshift.io/cluster-api-autoscaler-node-group-max-size"
	// pod fits on no Node but the MachineSet's.
	pod = `
apiVersion: v1
kind: Pod
metadata: {name: work, namespace: default}
spec:
  nodeSelector: {node.kubernetes.io/instance-type: hollow}
  containers: [{name: work, image: work, resources: {requests: {cpu: "3"}}}]
`
	// autoscaled are the objects of the cluster-autoscaler-operator.
	autoscaled = `
apiVersion: autoscaling.openshift.io/v1
kind: ClusterAutoscaler
metadata: {name: default}
spec: {scaleDown: {enabled: true}}
---
apiVersion: autoscaling.openshift.io/v1beta1
kind: MachineAutoscaler
metadata: {name: hollow, namespace: openshift-machine-api}
spec:
  minReplicas: 0
  maxReplicas: 5
  scaleTargetRef: {apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: hollow}
`
)

// hollow creates the example MachineSet of simulated Nodes without replicas until the story ends.
func (w *world) hollow(t *testing.T, annotations map[string]string) *machinev1beta1.MachineSet {
	t.Helper()
	set := w.set(t, "kubemark")
	set.Spec.Replicas, set.Annotations = new(int32), annotations
	must(t, w.client.Create(t.Context(), set))
	t.Cleanup(func() {
		if err := w.client.Delete(context.WithoutCancel(t.Context()), set); err != nil {
			t.Error(err)
		}
	})
	return set
}

// scales has an autoscaler create and remove the Node of a Pod.
func scales(t *testing.T, w *world, provider string) {
	set := w.hollow(t, map[string]string{minSize: "0", maxSize: "2"})
	w.start(t, "cluster-autoscaler", []string{
		"OPENSHIFT_CLUSTERAPI_DISABLE=true", "CAPI_GROUP=machine.openshift.io", "CAPI_VERSION=v1beta1",
	}, "--cloud-provider="+provider, "--kubeconfig="+w.lab.Cluster.AdminKubeconfig(), "--leader-elect=false",
		"--namespace="+lab.Namespace, "--address=127.0.0.1:"+port(t), "--scan-interval=2s",
		"--scale-down-unneeded-time=5s", "--scale-down-delay-after-add=1s",
		"--node-group-auto-discovery=clusterapi:namespace="+lab.Namespace)
	must(t, w.lab.Apply(t.Context(), pod))
	until(t, "the Pod runs on a new Machine's Node", func(ctx context.Context) error {
		out, err := w.lab.Run(ctx, "", "get", "pod", "work", "-o", "jsonpath={.status.phase} {.spec.nodeName}")
		if err == nil && !strings.HasPrefix(out, "Running hollow-") {
			err = fmt.Errorf("it is %q", out)
		}
		return err
	})
	if err := w.counts(t.Context(), set, 1); err != nil {
		t.Error(err)
	}
	_, err := w.lab.Run(t.Context(), "", "delete", "pod", "work")
	must(t, err)
	until(t, "the MachineSet has no Machine", func(ctx context.Context) error { return w.counts(ctx, set, 0) })
}

func (w *world) counts(ctx context.Context, set *machinev1beta1.MachineSet, want int) error {
	machines, err := w.machines(ctx, set.Spec.Selector.MatchLabels)
	if err == nil && len(machines) != want {
		err = fmt.Errorf("there are %d Machines, want %d", len(machines), want)
	}
	return err
}

// annotates has the cluster-autoscaler-operator set the limits of a MachineSet and deploy the autoscaler. The file with
// its CRDs is beside the program.
func annotates(t *testing.T, w *world) {
	const name = "cluster-autoscaler-operator"
	crds, err := os.ReadFile(program(name) + ".yaml")
	must(t, err)
	must(t, errors.Join(w.lab.Apply(t.Context(), string(crds)),
		(&controlplane.ControlPlane{Config: w.config}).InstallMonitoring(),
		w.client.Create(t.Context(), &configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})))
	set := w.hollow(t, nil)
	w.start(t, name, []string{"LEADER_ELECTION=false", "WEBHOOKS_ENABLED=false", "METRICS_PORT=" + port(t)})
	must(t, w.lab.Apply(t.Context(), autoscaled))
	until(t, "the MachineSet has its limits", func(ctx context.Context) error {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(set), set)
		if err == nil && (set.Annotations[minSize] != "0" || set.Annotations[maxSize] != "5") {
			err = fmt.Errorf("its annotations are %v", set.Annotations)
		}
		return err
	})
	until(t, "the autoscaler is deployed", func(ctx context.Context) error {
		_, err := w.lab.Kubectl(ctx, "get", "deployment", "cluster-autoscaler-default")
		return err
	})
}
