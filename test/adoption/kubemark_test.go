package adoption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// simulated tests the module kubemark with an API server and its example's credentials.
type simulated struct {
	*world
	plane       *controlplane.ControlPlane
	credentials map[string][]byte
}

func newSimulated(t *testing.T) *simulated {
	t.Helper()
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	h := &simulated{world: newWorld(t, "kubemark"), plane: plane}
	h.credentials = map[string][]byte{
		"server": []byte(plane.Config.Host), "token": []byte(h.token()), "ca.crt": plane.Config.CAData,
	}
	return h
}

// token returns the token of an account with the rights in the module's example.
func (h *simulated) token() string {
	h.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubemark"}}
	for _, object := range []client.Object{
		account,
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "kubemark"},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"nodes"},
					Verbs: []string{"get", "list", "create", "patch", "delete"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "kubemark"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubemark"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "kubemark"}},
		},
	} {
		if err := h.plane.Client.Create(h.t.Context(), object); err != nil {
			h.t.Fatal(err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := h.plane.Client.SubResource("token").Create(h.t.Context(), account, request); err != nil {
		h.t.Fatal(err)
	}
	return request.Status.Token
}

// node creates a Node like Kubernetes' own simulated Nodes: its provider ID contains its name.
func (h *simulated) node(name string, labels map[string]string) *corev1.Node {
	h.t.Helper()
	capacity := corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: "kubemark://" + name},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64"},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}},
		},
	}
	if err := h.plane.Client.Create(h.t.Context(), node); err != nil {
		h.t.Fatal(err)
	}
	return h.read(name)
}

func (h *simulated) read(name string) *corev1.Node {
	h.t.Helper()
	node := &corev1.Node{}
	if err := h.plane.Client.Get(h.t.Context(), types.NamespacedName{Name: name}, node); err != nil {
		h.t.Fatal(err)
	}
	return node
}

func (h *simulated) machine(name string, spec map[string]any) *machinev1beta1.Machine {
	h.t.Helper()
	fields := map[string]any{
		"apiVersion": "kubemarkproviderconfig.openshift.io/v1alpha1", "kind": "KubemarkMachineProviderConfig",
		"credentialsSecret": map[string]any{"name": "kubemark-credentials"},
	}
	for field, value := range spec {
		fields[field] = value
	}
	machine := machineOf(name, fields)
	h.render(machine, clusterID, h.credentials, nil)
	return machine
}

func TestASimulatedNodeIsAdoptedAsItIs(t *testing.T) {
	long.Test(t)
	h := newSimulated(t)
	made := h.node("worker-1", map[string]string{"node.kubernetes.io/instance-type": "hollow"})
	h.machine("worker-1", nil)
	h.adopt("kubemark://worker-1", "")

	plan := h.plan()
	if diff := cmp.Diff([]string{"kubectl_manifest.this import update", "terraform_data.made_with import"},
		changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), warnings(plan)); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	var providerID string
	output(t, plan, "provider_id", &providerID)
	if providerID != made.Spec.ProviderID {
		t.Errorf("the plan has the provider ID %s; want the Node's, %s", providerID, made.Spec.ProviderID)
	}
	var addresses []corev1.NodeAddress
	output(t, plan, "addresses", &addresses)
	if diff := cmp.Diff(made.Status.Addresses, addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if found := h.read("worker-1"); found.ResourceVersion != made.ResourceVersion {
		t.Error("the plan has changed the Node")
	}

	h.apply()
	adopted := h.read("worker-1")
	if adopted.UID != made.UID || adopted.Spec.ProviderID != made.Spec.ProviderID ||
		!adopted.CreationTimestamp.Equal(&made.CreationTimestamp) {
		t.Errorf("the adopted Node is %s %s; want %s %s", adopted.UID, adopted.Spec.ProviderID,
			made.UID, made.Spec.ProviderID)
	}

	h.link() // later plans do not use adopt/
	if left := changes(h.plan()); len(left) > 0 {
		t.Errorf("a plan after the adoption has changes %v", left)
	}
	h.machine("worker-1", map[string]any{"zone": "zone-a"})
	if diff := cmp.Diff([]string{"kubectl_manifest.this update"}, changes(h.plan())); diff != "" {
		t.Errorf("another zone plans (-want +got):\n%s", diff)
	}
	h.apply()
	h.machine("worker-1", map[string]any{"cpu": 8})
	if diff := cmp.Diff([]string{"kubectl_manifest.this delete create"}, changes(h.plan())); diff != "" {
		t.Errorf("another capacity plans (-want +got):\n%s", diff)
	}
	if edited := h.read("worker-1"); edited.UID != made.UID ||
		edited.Labels["topology.kubernetes.io/zone"] != "zone-a" {
		t.Errorf("the edited Node is %s with %v", edited.UID, edited.Labels)
	}
	h.destroy()
	if err := h.plane.Client.Get(t.Context(), types.NamespacedName{Name: "worker-1"},
		&corev1.Node{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Node is there after the destroy: %v", err)
	}
}

func TestWhatDiffersOfASimulatedNodeIsSaid(t *testing.T) {
	long.Test(t)
	h := newSimulated(t)
	h.node("worker-1", map[string]string{"topology.kubernetes.io/zone": "zone-b"})
	h.machine("worker-1", map[string]any{
		"cpu": 8, "memory": "32Gi", "pods": 250, "architecture": "arm64", "zone": "zone-a",
	})
	h.adopt("kubemark://worker-1", "")
	want := []string{
		"providerSpec.architecture: arm64 is requested, the Node has amd64 and keeps it.",
		"providerSpec.cpu: 8 is requested, the Node has 4 and keeps it.",
		`providerSpec.instanceType: hollow is requested, the Node's label is "", and will be changed.`,
		"providerSpec.memory: 32Gi is requested, the Node has 16Gi and keeps it.",
		"providerSpec.pods: 250 is requested, the Node has 110 and keeps it.",
		`providerSpec.zone: zone-a is requested, the Node's label is "zone-b", and will be changed.`,
	}
	plan := h.plan()
	if diff := cmp.Diff(want, warnings(plan)); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"kubectl_manifest.this import update", "terraform_data.made_with import"},
		changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
}

func TestASimulatedNodeOfOthersIsRefused(t *testing.T) {
	long.Test(t)
	h := newSimulated(t)
	h.node("worker-1", map[string]string{"machine-iac.io/cluster-id": "other"})
	h.node("worker-2", nil)

	h.machine("worker-1", nil)
	h.adopt("kubemark://worker-1", "")
	h.refuses("The Node worker-1 belongs to the cluster other, and the Machine to the cluster demo-x7k2p.")

	h.machine("worker-2", nil)
	h.adopt("kubemark://worker-3", "")
	h.refuses("The Node worker-2 has the provider ID kubemark://worker-2, but the Machine has kubemark://worker-3.")
	h.adopt("", "/api/v1/nodes/worker-1")
	h.refuses("The Node worker-1 has not the name of the Machine, worker-2, and a Node cannot be renamed.")

	h.machine("worker-4", nil)
	h.adopt("kubemark://worker-4", "")
	_, err := h.tryPlan()
	if err == nil || !h.module.AdoptAbsent(err.Error()) {
		t.Errorf("adopting a Node that is not there says %v; want module.yaml to know that for absence", err)
	}

	h.machine("worker-2", nil)
	h.adopt("", "/api/v1/nodes/worker-2")
	if plan := changes(h.plan()); len(plan) != 2 {
		t.Errorf("the Node that a user has named is planned as %v", plan)
	}
}

func TestSimulatedNodesAreListed(t *testing.T) {
	long.Test(t)
	h := newSimulated(t)
	mine := h.node("worker-1", map[string]string{
		"machine-iac.io/cluster-id": clusterID, "machine-iac.io/machine-uid": "a-uid",
	})
	second := h.node("worker-2", map[string]string{"machine-iac.io/cluster-id": clusterID})
	h.node("worker-3", map[string]string{"machine-iac.io/cluster-id": "other"})
	h.node("worker-4", nil)
	h.machine("worker-9", nil)
	h.link(h.module.InventoryFiles()...)
	var found []listed
	output(t, h.plan(), "inventory", &found)
	want := []listed{
		{"kubemark://worker-1", "worker-1", mine.CreationTimestamp.UTC().Format(time.RFC3339), "a-uid"},
		{"kubemark://worker-2", "worker-2", second.CreationTimestamp.UTC().Format(time.RFC3339), ""},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}
