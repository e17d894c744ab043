//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/ownership"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// adopted is how many Machines of another actuator are adopted.
const adopted = 50

// anotherActuatorsMachines goes through "From machine-api-operator" of docs/adoption.md: Machines with Nodes that something else has made.
func anotherActuatorsMachines() {
	const other, deleted = "foreign-other", "foreign-deleted"
	before := map[string]*corev1.Node{}
	names := make([]string, 0, adopted)

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		for i := range adopted {
			name := fmt.Sprintf("foreign-%02d", i)
			names = append(names, name)
			w.madeElsewhere(ctx, name, clusterID)
		}
		w.madeElsewhere(ctx, deleted, clusterID)
		w.madeElsewhere(ctx, other, "other-cluster")
		for _, name := range append([]string{other, deleted}, names...) {
			before[name] = w.node(ctx, name)
		}
		DeferCleanup(func(ctx SpecContext) {
			w.kubectl(ctx, "delete", "machine", other, "--wait=false")
			w.kubectl(ctx, "patch", "machine", other, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
			w.removed(ctx, names...)
			w.kubectl(ctx, "delete", "node", other, "--ignore-not-found")
		})
	})
	unchanged := func(ctx context.Context, names ...string) {
		GinkgoHelper()
		for _, name := range names {
			now := w.node(ctx, name)
			Expect([]any{now.UID, now.CreationTimestamp, now.Spec.ProviderID}).To(Equal([]any{before[name].UID, before[name].CreationTimestamp, before[name].Spec.ProviderID}), name)
		}
	}

	It("leaves them alone, and refuses to delete one", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "machine", deleted, "--wait=false")
		until(ctx, patience, "the Machine says why it is not deleted", func(ctx context.Context) error {
			exists := condition(w.get(ctx, deleted), machinev1beta1.InstanceExistsCondition)
			if exists.Reason != "NotAdopted" || !strings.Contains(exists.Message, lifecycle.AdoptionAnnotation) {
				return fmt.Errorf("InstanceExists is %s: %s", exists.Reason, exists.Message)
			}
			return nil
		})
		Expect(phaseOf(w.get(ctx, deleted))).NotTo(Equal(machinev1beta1.PhaseDeleting))
		Expect(w.node(ctx, deleted).Spec.Unschedulable).To(BeFalse(), "its Node is drained")
	})

	It("shows what their adoption would do, and does nothing", func(ctx SpecContext) {
		list := w.adoptions(ctx, append([]string{"--plan"}, names...)...)
		Expect(list).To(HaveLen(adopted))
		for _, name := range names {
			Expect(list[name].Result).To(BeElementOf(ownership.AdoptionClean, ownership.AdoptionDiffers), "%+v", list[name])
			Expect(list[name].Imports).To(ContainElement(on.instance))
		}
		for _, name := range names {
			Expect(w.node(ctx, name).Labels).NotTo(HaveKey("machine-iac.io/machine-uid"), "%s was written", name)
		}
	})

	It("adopts all of them, and changes none", func(ctx SpecContext) {
		for name, found := range w.adoptions(ctx, names...) {
			Expect(found.Result).To(Equal(ownership.AdoptionDone), name)
		}
		until(ctx, patience, "all are Running and up to date", func(ctx context.Context) error {
			var wrong []error
			for _, name := range names {
				machine := w.get(ctx, name)
				wrong = append(wrong, phaseIs(machine, machinev1beta1.PhaseRunning), w.upToDateIs(machine, corev1.ConditionTrue, ""))
			}
			return errors.Join(wrong...)
		})
		unchanged(ctx, names...)
		Expect(w.node(ctx, names[0]).Spec.ProviderID).To(Equal(*w.get(ctx, names[0]).Spec.ProviderID))
	})

	It("finds no drift afterwards", func(ctx SpecContext) {
		w.pod.restart(ctx, "--drift-interval=10s")
		DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
		until(ctx, patience, "each was checked", func(ctx context.Context) error {
			var wrong []error
			for _, name := range names {
				wrong = append(wrong, w.driftIs(ctx, name, metav1.ConditionFalse))
			}
			return errors.Join(wrong...)
		})
	})

	It("edits one in place, and deletes another", func(ctx SpecContext) {
		w.patchSpec(ctx, names[0], "zone", "zone-b")
		until(ctx, patience, "the Node has the edit", func(ctx context.Context) error {
			if got := w.node(ctx, names[0]).Labels[corev1.LabelTopologyZone]; got != "zone-b" {
				return fmt.Errorf("its zone is %q", got)
			}
			return nil
		})
		unchanged(ctx, names[0])
		w.removed(ctx, names[1])
		Expect(w.client.Get(ctx, types.NamespacedName{Name: names[1]}, &corev1.Node{})).NotTo(Succeed())
	})

	It("refuses one that belongs to another cluster, and leaves it as it is", func(ctx SpecContext) {
		found := w.adoptions(ctx, other)[other]
		Expect(found.Result).To(Equal(ownership.AdoptionRefused))
		Expect(found.Message).To(ContainSubstring("belongs to the cluster other-cluster"))
		unchanged(ctx, other)
		Expect(w.node(ctx, other).Labels).NotTo(HaveKey("machine-iac.io/machine-uid"))
	})

	It("adopts the one that is deleted, once that is requested, and then deletes it", func(ctx SpecContext) {
		w.kubectl(ctx, "annotate", "machine", deleted, lifecycle.AdoptionAnnotation+"="+string(lifecycle.AdoptionAdopt))
		until(ctx, patience, "Machine and Node are gone", func(ctx context.Context) error {
			for _, object := range []client.Object{
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: deleted}}, &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: deleted}},
			} {
				if err := w.client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%T %s is there: %w", object, deleted, err)
				}
			}
			return nil
		})
	})
}

// madeElsewhere makes a Node as another actuator of a cluster would, and then its Machine, in phase Running.
func (w *world) madeElsewhere(ctx context.Context, name, cluster string) {
	GinkgoHelper()
	id := "kubemark://made-elsewhere/" + name
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				"machine-iac.io/cluster-id": cluster, corev1.LabelInstanceTypeStable: "hollow", corev1.LabelTopologyRegion: "region-a", corev1.LabelTopologyZone: "zone-a",
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: id},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
			},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}, {Type: corev1.NodeHostName, Address: name}},
			NodeInfo:  corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux"},
		},
	}
	machine := w.machine(name)
	machine.Spec.ProviderID = &id
	machine.Finalizers = []string{machinev1beta1.MachineFinalizer}
	w.create(ctx, node, machine)
	machine.Status.Phase = ptr.To(machinev1beta1.PhaseRunning)
	machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name, UID: node.UID}
	patch, err := json.Marshal(map[string]any{"status": machine.Status})
	Expect(err).NotTo(HaveOccurred())
	Expect(w.client.Status().Patch(ctx, machine, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// adoptions runs kubectl machine adopt and returns what it prints, by Machine. Its exit code says whether something differs, which is looked at here.
func (w *world) adoptions(ctx context.Context, arguments ...string) map[string]ownership.MachineAdoption {
	GinkgoHelper()
	command := exec.CommandContext(ctx, w.lab.Path("bin", "kubectl"), append([]string{"machine", "adopt", "-o", "json", "--namespace", lab.Namespace}, arguments...)...)
	command.Dir = w.dir
	command.Env = []string{"PATH=" + w.lab.Path("bin"), "KUBECONFIG=" + w.cluster.AdminKubeconfig(), "HOME=" + w.dir}
	var out, notes bytes.Buffer
	command.Stdout, command.Stderr = &out, &notes
	if err := command.Run(); err != nil {
		Expect(command.ProcessState.ExitCode()).To(Equal(2), "%v: %s%s", err, out.String(), notes.String())
	}
	var list ownership.AdoptionList
	Expect(json.Unmarshal(out.Bytes(), &list)).To(Succeed(), "%s%s", out.String(), notes.String())
	found := map[string]ownership.MachineAdoption{}
	for _, one := range list.Items {
		found[one.Machine] = one
	}
	return found
}
