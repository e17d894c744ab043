//go:build peers

package peers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const masters = 3

// rolls has a ControlPlaneMachineSet replace three masters, and plays their kubelets.
func rolls(t *testing.T, w *world) {
	must(t, w.vcenter.Delay(t.Context(), 0))
	spec := w.vsphereSet(t, 0).Spec.Template.Spec
	labels := map[string]string{
		"machine.openshift.io/cluster-api-cluster": clusterID, "machine.openshift.io/cluster-api-machine-role": "master",
		"machine.openshift.io/cluster-api-machine-type": "master",
	}
	for n := range masters {
		must(t, w.client.Create(t.Context(), &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: lab.Namespace, Name: fmt.Sprintf("%s-master-%d", clusterID, n), Labels: labels,
		}, Spec: spec}))
	}
	until(t, "three masters run", func(ctx context.Context) error { return w.mastersRun(ctx, labels, 4) })
	cloned := w.clones(t)
	w.applyControlPlane(t, labels, &spec)
	w.start(t, "cluster-control-plane-machine-set-operator", nil, "--leader-elect=false", "--webhook-port=0",
		"--metrics-bind-address=127.0.0.1:"+port(t), "--health-probe-bind-address=127.0.0.1:"+port(t), "-v=4",
		"--tls-min-version=VersionTLS12", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
	until(t, "the ControlPlaneMachineSet counts three masters up to date", func(ctx context.Context) error {
		out, err := w.lab.Kubectl(ctx, "get", "controlplanemachineset", "cluster",
			"-o", "jsonpath={.status.readyReplicas} {.status.updatedReplicas}")
		if err == nil && out != "3 3" {
			err = fmt.Errorf("it counts %q", out)
		}
		return err
	})
	spec.ProviderSpec.Value.Raw = []byte(strings.Replace(string(spec.ProviderSpec.Value.Raw),
		`"numCPUs":4`, `"numCPUs":8`, 1))
	w.applyControlPlane(t, labels, &spec)
	most := 0
	until(t, "three other masters run", func(ctx context.Context) error {
		machines, err := w.machines(ctx, labels)
		most = max(most, len(machines))
		return errors.Join(err, w.mastersRun(ctx, labels, 8))
	})
	if most != masters+1 {
		t.Errorf("there were up to %d masters; want %d", most, masters+1)
	}
	if got := w.clones(t) - cloned; got != masters {
		t.Errorf("%d virtual machines were cloned; want %d", got, masters)
	}
}

// applyControlPlane applies a ControlPlaneMachineSet.
func (w *world) applyControlPlane(t *testing.T, labels map[string]string, spec *machinev1beta1.MachineSpec) {
	t.Helper()
	count := int32(masters)
	manifest, err := yaml.Marshal(&machinev1.ControlPlaneMachineSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "machine.openshift.io/v1", Kind: "ControlPlaneMachineSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: "cluster"},
		Spec: machinev1.ControlPlaneMachineSetSpec{
			State: machinev1.ControlPlaneMachineSetStateActive, Replicas: &count,
			Strategy: machinev1.ControlPlaneMachineSetStrategy{Type: machinev1.RollingUpdate},
			Selector: metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			Template: machinev1.ControlPlaneMachineSetTemplate{
				MachineType: machinev1.OpenShiftMachineV1Beta1MachineType,
				OpenShiftMachineV1Beta1Machine: &machinev1.OpenShiftMachineV1Beta1MachineTemplate{
					ObjectMeta: machinev1.ControlPlaneMachineSetTemplateObjectMeta{Labels: labels}, Spec: *spec,
				},
			},
		},
	})
	must(t, err)
	must(t, w.lab.Apply(t.Context(), string(manifest)))
}

// mastersRun returns nil if there are three masters, all running with so many CPUs. Until then, it joins their Nodes.
func (w *world) mastersRun(ctx context.Context, labels map[string]string, cpus int) error {
	machines, err := w.machines(ctx, labels)
	problems := []error{err}
	for i := range machines {
		machine := &machines[i]
		if machine.Status.NodeRef == nil && machine.DeletionTimestamp == nil {
			_, err = w.join(ctx, machine, map[string]string{"node-role.kubernetes.io/master": ""})
			problems = append(problems, err)
		}
		raw := string(machine.Spec.ProviderSpec.Value.Raw)
		if machine.Status.Phase == nil || *machine.Status.Phase != machinev1beta1.PhaseRunning ||
			!strings.Contains(raw, fmt.Sprintf(`"numCPUs":%d`, cpus)) {
			problems = append(problems, fmt.Errorf("%s: %+v, %s", machine.Name, machine.Status, raw))
		}
	}
	if len(machines) != masters {
		problems = append(problems, fmt.Errorf("there are %d", len(machines)))
	}
	return errors.Join(problems...)
}

// clones returns how many virtual machines have been cloned.
func (w *world) clones(t *testing.T) int {
	t.Helper()
	calls, err := w.vcenter.Calls(t.Context())
	must(t, err)
	return calls["CloneVM_Task"]
}
