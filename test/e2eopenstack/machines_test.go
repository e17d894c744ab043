//go:build e2e_openstack

package e2eopenstack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

const (
	example     = "modules/openstack/examples/machineset.yaml"
	setLabel    = "machine.openshift.io/cluster-api-machineset"
	credentials = "openstack-cloud-credentials"
	instance    = "openstack_compute_instance_v2.this"
	upToDate    = "InstanceUpToDate"
	// marker is in the user data, and must not appear in any log.
	marker   = "b0b1e5-of-the-user-data"
	userData = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/` + marker + `"}]}}`
)

// exampleSet returns the module's example.
func exampleSet(replicas int32) *machinev1beta1.MachineSet {
	GinkgoHelper()
	content, err := os.ReadFile(w.lab.Path(example))
	Expect(err).NotTo(HaveOccurred())
	set := &machinev1beta1.MachineSet{}
	Expect(yaml.UnmarshalStrict(content, set)).To(Succeed())
	set.Spec.Replicas = &replicas
	return set
}

// alone returns a standalone Machine like the example's.
func alone(name string, fields map[string]any) *machinev1beta1.Machine {
	GinkgoHelper()
	template := exampleSet(0).Spec.Template
	machine := &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name, Labels: maps.Clone(template.Labels)},
		Spec:       template.Spec,
	}
	delete(machine.Labels, setLabel)
	spec := map[string]any{}
	Expect(json.Unmarshal(machine.Spec.ProviderSpec.Value.Raw, &spec)).To(Succeed())
	maps.Copy(spec, fields)
	raw, err := json.Marshal(spec)
	Expect(err).NotTo(HaveOccurred())
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return machine
}

func newSecret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: lab.Namespace, Name: name, Labels: map[string]string{references.Label: "true"},
	}, StringData: data}
}

func (w *world) machine(ctx context.Context, g Gomega, name string) *machinev1beta1.Machine {
	machine := &machinev1beta1.Machine{}
	g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, machine)).To(Succeed())
	return machine
}

// machinesOf returns a MachineSet's Machines by name.
func (w *world) machinesOf(ctx context.Context, g Gomega, set *machinev1beta1.MachineSet) []machinev1beta1.Machine {
	list := &machinev1beta1.MachineList{}
	g.Expect(w.client.List(ctx, list, client.InNamespace(lab.Namespace), client.MatchingLabels{setLabel: set.Name})).To(
		Succeed())
	return list.Items
}

// reach waits until the MachineSet has count Machines in a phase.
func (w *world) reach(ctx context.Context, set *machinev1beta1.MachineSet, count int,
	phase string) []machinev1beta1.Machine {
	GinkgoHelper()
	var machines []machinev1beta1.Machine
	Eventually(ctx, func(g Gomega) {
		machines = w.machinesOf(ctx, g, set)
		g.Expect(machines).To(HaveLen(count))
		g.Expect(machines).To(HaveEach(HaveField("Status.Phase", HaveValue(Equal(phase)))))
	}).Should(Succeed())
	return machines
}

// brings creates a Machine and waits for its server.
func (w *world) brings(ctx context.Context, machine *machinev1beta1.Machine) *machinev1beta1.Machine {
	GinkgoHelper()
	Expect(w.client.Create(ctx, machine)).To(Succeed())
	return w.provisioned(ctx, machine.Name)
}

func (w *world) provisioned(ctx context.Context, name string) *machinev1beta1.Machine {
	GinkgoHelper()
	var machine *machinev1beta1.Machine
	Eventually(ctx, func(g Gomega) {
		machine = w.machine(ctx, g, name)
		g.Expect(machine.Status.Phase).To(HaveValue(Equal(machinev1beta1.PhaseProvisioned)), explain(machine))
	}).Should(Succeed())
	return machine
}

func (w *world) removed(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(w.client.Delete(ctx, &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name},
	})).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		left := &machinev1beta1.Machine{}
		err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, left)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), explain(left))
	}).Should(Succeed())
	Expect(w.cloud.server(ctx, name)).To(BeNil())
}

// joins creates the Node that the server's kubelet would create.
func (w *world) joins(ctx context.Context, machine *machinev1beta1.Machine) {
	GinkgoHelper()
	Expect(w.client.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: machine.Name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: *machine.Spec.ProviderID},
	})).To(Succeed())
}

// patch changes fields of a Machine's providerSpec, as kubectl edit does.
func (w *world) patch(ctx context.Context, name string, fields map[string]any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"providerSpec": map[string]any{"value": fields}}})
	Expect(err).NotTo(HaveOccurred())
	_, err = w.lab.Kubectl(ctx, "patch", "machine", name, "--type=merge", "--patch", string(patch))
	Expect(err).NotTo(HaveOccurred())
}

// checked requests a drift check, and returns its result.
func (w *world) checked(ctx context.Context, name string) metav1.Condition {
	GinkgoHelper()
	request := strconv.FormatInt(time.Now().UnixNano(), 10)
	_, err := w.lab.Kubectl(ctx, "annotate", "machine", name, "--overwrite", record.CheckDriftAnnotation+"="+request)
	Expect(err).NotTo(HaveOccurred())
	var found metav1.Condition
	Eventually(ctx, func(g Gomega) {
		status := providerStatus(w.machine(ctx, g, name))
		g.Expect(status.LastDriftCheckRequest).To(Equal(request), "%+v", status)
		drifted := meta.FindStatusCondition(status.Conditions, "Drifted")
		g.Expect(drifted).NotTo(BeNil())
		found = *drifted
	}).Should(Succeed())
	return found
}

func providerStatus(machine *machinev1beta1.Machine) v1alpha1.TerraformMachineProviderStatus {
	GinkgoHelper()
	status := v1alpha1.TerraformMachineProviderStatus{}
	if machine.Status.ProviderStatus != nil {
		Expect(json.Unmarshal(machine.Status.ProviderStatus.Raw, &status)).To(Succeed())
	}
	return status
}

func condition(machine *machinev1beta1.Machine, kind machinev1beta1.ConditionType) machinev1beta1.Condition {
	position := slices.IndexFunc(machine.Status.Conditions,
		func(each machinev1beta1.Condition) bool { return each.Type == kind })
	if position < 0 {
		return machinev1beta1.Condition{}
	}
	return machine.Status.Conditions[position]
}

// explain returns a description of the Machine's status for failures.
func explain(machine *machinev1beta1.Machine) func() string {
	return func() string {
		text := ""
		if machine.Status.ErrorMessage != nil {
			text = *machine.Status.ErrorMessage + "\n"
		}
		for _, each := range providerStatus(machine).Conditions {
			text += fmt.Sprintf("%s is %s (%s): %s\n", each.Type, each.Status, each.Reason, each.Message)
		}
		return text
	}
}

func internalIPs(machine *machinev1beta1.Machine) []string {
	var addresses []string
	for _, each := range machine.Status.Addresses {
		if each.Type == corev1.NodeInternalIP {
			addresses = append(addresses, each.Address)
		}
	}
	return addresses
}

// serverElsewhere creates a server through the API, as OpenShift's actuator does, and returns its ID.
func (w *world) serverElsewhere(ctx context.Context, name string) string {
	GinkgoHelper()
	c, i := w.cloud, w.installed
	made := c.make(ctx, network, "/v2.0/ports", "port",
		map[string]any{"name": name + "-0", "network_id": i.network, "security_groups": []string{i.securityGroup}})
	c.make(ctx, network, "/v2.0/trunks", "trunk", map[string]any{"name": name + "-0", "port_id": made})
	var flavors struct {
		Flavors []struct{ ID, Name string }
	}
	c.do(ctx, http.MethodGet, compute, "/flavors", nil, &flavors)
	position := slices.IndexFunc(flavors.Flavors,
		func(each struct{ ID, Name string }) bool { return each.Name == "m1.xlarge" })
	Expect(position).To(BeNumerically(">=", 0))
	id := c.make(ctx, compute, "/servers", "server", map[string]any{
		"name": name, "flavorRef": flavors.Flavors[position].ID, "imageRef": i.image,
		"networks": []any{map[string]any{"port": made}},
		"metadata": map[string]string{"Name": clusterID + "-worker", "openshiftClusterID": clusterID},
		"tags":     []string{tag},
	})
	Eventually(ctx, func() string { return c.server(ctx, name).Status }).Should(Equal("ACTIVE"))
	return id
}
