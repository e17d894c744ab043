//go:build e2e_libvirt

package e2elibvirt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
)

// manifests are a Pod to drain, and a check that replaces a Machine whose kubelet is silent.
const manifests = `apiVersion: apps/v1
kind: Deployment
metadata: {name: workload, namespace: default}
spec:
  selector: {matchLabels: {app: workload}}
  template:
    metadata: {labels: {app: workload}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: sleep, image: "localhost/busybox:latest", imagePullPolicy: Never}]
---
apiVersion: machine.openshift.io/v1beta1
kind: MachineHealthCheck
metadata: {name: workers, namespace: openshift-machine-api}
spec:
  selector: {matchLabels: {machine.openshift.io/cluster-api-machine-role: worker}}
  nodeStartupTimeout: 1h
  unhealthyConditions: [{type: Ready, status: Unknown, timeout: 10s}]
`

// stopper stops a Node's kubelet in a way that systemd does not see.
const stopper = `apiVersion: v1
kind: Pod
metadata: {name: stopper, namespace: default}
spec:
  nodeName: %s
  hostPID: true
  restartPolicy: Never
  containers:
    - name: stop
      image: localhost/busybox:latest
      imagePullPolicy: Never
      command: [/bin/busybox, sh, -c, 'kill -STOP $(/bin/busybox pidof kubelet)']
      securityContext: {privileged: true}
`

func TestADomainJoinsAsANodeAndIsReplaced(t *testing.T) {
	w := open(t)
	w.prepare()
	w.startManager()
	w.run(manifests, "apply", "--filename=-")
	set := w.createSet()
	first := w.joined("")

	w.run(fmt.Sprintf(stopper, first), "apply", "--filename=-")
	w.until("the Node whose kubelet is stopped is unknown, or gone", func(ctx context.Context) error {
		node := &corev1.Node{}
		err := w.client.Get(ctx, client.ObjectKey{Name: first}, node)
		if err == nil && readiness(node) != corev1.ConditionUnknown {
			err = fmt.Errorf("it is %s", readiness(node))
		}
		return client.IgnoreNotFound(err)
	})
	second := w.joined(first)

	w.kubectl("scale", "machineset", set, "--replicas=0")
	w.until("nothing is left", w.nothingLeft)
	if w.kubectl("get", "events", "--output=name",
		"--field-selector=reason=DrainSucceeded,involvedObject.name="+second) == "" {
		t.Errorf("%s was not drained", second)
	}
	w.show("get", "events", "--field-selector=involvedObject.kind=Machine")
}

// createSet creates the example's MachineSet with one Machine, and returns its name.
func (w *world) createSet() string {
	w.Helper()
	content, err := os.ReadFile(w.lab.Path("modules/libvirt/examples/machineset.yaml"))
	w.must(err)
	set := &machinev1beta1.MachineSet{}
	w.must(yaml.UnmarshalStrict(content, set))
	spec := map[string]any{}
	w.must(json.Unmarshal(set.Spec.Template.Spec.ProviderSpec.Value.Raw, &spec))
	spec["uri"], spec["networkInterfaceName"] = w.host.URI, "workers"
	spec["volume"] = map[string]any{"poolName": w.host.Name, "baseVolumeID": "worker.qcow2"}
	spec["domainMemory"], spec["domainVcpu"] = 1024, 2
	raw, err := json.Marshal(spec)
	w.must(err)
	set.Spec.Replicas, set.Spec.Template.Spec.ProviderSpec.Value = ptr.To[int32](1), &runtime.RawExtension{Raw: raw}
	w.must(w.client.Create(w.Context(), set))
	return set.Name
}

// joined waits until the Machine after an earlier one has a Node that runs the workload, and returns its name.
func (w *world) joined(earlier string) string {
	w.Helper()
	var name string
	w.until("a new Machine has a Ready Node", func(ctx context.Context) error {
		var machines machinev1beta1.MachineList
		var nodes corev1.NodeList
		if err := errors.Join(w.client.List(ctx, &machines), w.client.List(ctx, &nodes)); err != nil {
			return err
		}
		if len(machines.Items) != 1 || len(nodes.Items) != 1 {
			return fmt.Errorf("there are %d Machines and %d Nodes", len(machines.Items), len(nodes.Items))
		}
		machine, node := machines.Items[0], nodes.Items[0]
		phase, ready := ptr.Deref(machine.Status.Phase, ""), readiness(&node)
		if name = machine.Name; name == earlier || node.Name != name || machine.Status.NodeRef == nil ||
			phase != machinev1beta1.PhaseRunning || ready != corev1.ConditionTrue {
			return fmt.Errorf("Machine %s is %s, Node %s has Ready %s", name, phase, node.Name, ready)
		}
		return nil
	})
	w.until("the manager has approved both certificates, and the token is gone", func(ctx context.Context) error {
		return errors.Join(w.approved(ctx, name), w.noTokens(ctx))
	})
	w.until("a Pod runs on it", func(ctx context.Context) error {
		var pods corev1.PodList
		err := w.client.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels{"app": "workload"})
		if err == nil && !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
			return pod.Spec.NodeName == name && pod.Status.Phase == corev1.PodRunning
		}) {
			err = fmt.Errorf("none of %d does", len(pods.Items))
		}
		return err
	})
	w.show("get", "machines,nodes,certificatesigningrequests")
	w.show("get", "pods", "--namespace=default", "--output=wide")
	return name
}

// approved checks that the manager has approved a client and a serving certificate of a Node.
func (w *world) approved(ctx context.Context, node string) error {
	var requests certificatesv1.CertificateSigningRequestList
	if err := w.client.List(ctx, &requests); err != nil {
		return err
	}
	missing := map[string]bool{
		certificatesv1.KubeAPIServerClientKubeletSignerName: true, certificatesv1.KubeletServingSignerName: true,
	}
	for _, request := range requests.Items {
		for _, one := range request.Status.Conditions {
			if one.Reason == "KubeletOfMachine" && strings.HasSuffix(one.Message, "/"+node) &&
				len(request.Status.Certificate) > 0 {
				delete(missing, request.Spec.SignerName)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no certificate for %v", missing)
	}
	return nil
}

func (w *world) noTokens(ctx context.Context) error {
	var tokens corev1.SecretList
	err := w.client.List(ctx, &tokens, client.InNamespace("kube-system"), client.HasLabels{bootstrap.Label})
	if err == nil && len(tokens.Items) > 0 {
		err = fmt.Errorf("the token %s is left", tokens.Items[0].Name)
	}
	return err
}

// nothingLeft checks that Machines, Nodes, domains, volumes and tokens are gone.
func (w *world) nothingLeft(ctx context.Context) error {
	left, err := w.lab.Kubectl(ctx, "get", "machines,nodes", "--output=name")
	domains, unlisted := w.host.Virsh(ctx, "list", "--all", "--name")
	volumes, unread := os.ReadDir(w.host.Pool)
	err = errors.Join(err, unlisted, unread, w.noTokens(ctx))
	if err == nil && (left+domains != "" || len(volumes) != 1) {
		err = fmt.Errorf("left are %s%s, and %d volumes", left, domains, len(volumes))
	}
	return err
}

func readiness(node *corev1.Node) corev1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}
