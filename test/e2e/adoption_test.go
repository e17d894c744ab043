//go:build e2e

package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// adopted is the number of Machines to adopt per platform.
const adopted = 50

// anotherActuatorsMachines follows "From machine-api-operator" in docs/adoption.md: it adopts Machines with Nodes,
// which something else created. test/life adopts instances of other platforms.
func anotherActuatorsMachines() {
	const other, deleted = "foreign-other", "foreign-deleted"
	f := foreigners{}
	var names []string

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		for i := range adopted {
			names = append(names, fmt.Sprintf("foreign-%02d", i))
		}
		for _, name := range append([]string{deleted}, names...) {
			f.madeElsewhere(ctx, w.machine(name), clusterID)
		}
		f.madeElsewhere(ctx, w.machine(other), "other-cluster")
		DeferCleanup(func(ctx SpecContext) { f.forgotten(ctx, append([]string{other}, names...)...) })
	})

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
		until(ctx, 2*patience, "each has a plan", func(ctx context.Context) error { // one may fail on a busy machine
			list := w.adoptions(ctx, append([]string{"--plan"}, names...)...)
			for _, name := range names {
				if !slices.Contains([]inspect.AdoptionResult{inspect.AdoptionClean, inspect.AdoptionDiffers},
					list[name].Result) || !slices.Contains(list[name].Imports, on.instance) {
					return fmt.Errorf("%s: %+v", name, list[name])
				}
			}
			return nil
		})
		f.untouched(ctx, names...)
	})

	It("adopts all of them, and changes none", func(ctx SpecContext) {
		for name, found := range w.adoptions(ctx, names...) {
			Expect(found.Result).To(Equal(inspect.AdoptionDone), "%s: %+v", name, found)
		}
		until(ctx, patience, "all are Running and up to date", func(ctx context.Context) error {
			var wrong []error
			for _, name := range names {
				machine := w.get(ctx, name)
				wrong = append(wrong, phaseIs(machine, machinev1beta1.PhaseRunning),
					w.upToDateIs(machine, corev1.ConditionTrue, ""))
			}
			return errors.Join(wrong...)
		})
		f.same(ctx, names...)
	})

	It("finds no drift afterwards", func(ctx SpecContext) {
		begun := time.Now()
		w.pod.restart(ctx, "--drift-interval=10s")
		DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
		until(ctx, 2*patience, "each was checked", func(ctx context.Context) error {
			var wrong []error
			for _, name := range names {
				wrong = append(wrong, w.driftSince(ctx, begun, name, metav1.ConditionFalse))
			}
			return errors.Join(wrong...)
		})
		f.same(ctx, names...)
	})

	It("edits one in place, and deletes another", func(ctx SpecContext) {
		before := w.fingerprint(ctx, names[0])
		w.patchSpec(ctx, names[0], "zone", "zone-b")
		until(ctx, patience, "the edit is carried out", func(ctx context.Context) error {
			if w.fingerprint(ctx, names[0]) == before {
				return errors.New("the state is that of before")
			}
			if got := w.node(ctx, names[0]).Labels[corev1.LabelTopologyZone]; got != "zone-b" {
				return fmt.Errorf("its zone is %q", got)
			}
			return nil
		})
		f.same(ctx, names[0])
		w.removed(ctx, names[1])
		Expect(seenNode(ctx, names[1])).To(BeNil())
		names = slices.Delete(names, 1, 2)
	})

	It("refuses one that belongs to another cluster, and leaves it as it is", func(ctx SpecContext) {
		found := w.adoptions(ctx, other)[other]
		Expect(found.Result).To(Equal(inspect.AdoptionRefused))
		Expect(found.Message).To(ContainSubstring("belongs to the cluster other-cluster"))
		f.untouched(ctx, other)
	})

	It("adopts the one that is deleted, once that is requested, and then deletes it", func(ctx SpecContext) {
		w.kubectl(ctx, "annotate", "machine", deleted, lifecycle.AdoptionAnnotation+"="+string(lifecycle.AdoptionAdopt))
		until(ctx, patience, "Machine and Node are gone", func(ctx context.Context) error {
			for _, object := range []client.Object{
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: deleted}},
				&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: deleted}},
			} {
				if err := w.client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%T %s is there (%w)", object, object.GetName(), cmp.Or(err, errStays))
				}
			}
			return nil
		})
	})

	It("releases the others, and leaves their instances", func(ctx SpecContext) {
		attempt := 0
		until(ctx, 2*patience, "no state of them is left", func(ctx context.Context) error {
			stored := w.stored(ctx, names)
			if len(stored) == 0 {
				return nil // a failed attempt has released the last one
			}
			attempt++
			into := filepath.Join(w.dir, fmt.Sprintf("released-%d", attempt))
			// Rejected for a Machine on which a run has started meanwhile.
			printed, err := w.tries(ctx, append([]string{"release", "--namespace", lab.Namespace, "-o", into},
				stored...)...)
			if err != nil {
				return fmt.Errorf("releasing %d: %w: %s", len(stored), err, lastLines(printed.notes, 1))
			}
			return nil
		})
		f.same(ctx, names[1:]...)
	})
}

// aMachineOfAStack tests a Machine of a stack, which cannot be adopted yet.
func aMachineOfAStack() {
	const name = "foreign-to-a-stack"
	f := foreigners{}

	BeforeAll(func(ctx SpecContext) {
		stack, _ := chosen(onPulumi)
		f.madeElsewhere(ctx, w.machineOn(stack, name), clusterID)
		DeferCleanup(func(ctx SpecContext) { f.forgotten(ctx, name) })
	})

	DescribeTable("is not adopted, and stays as it is", func(ctx SpecContext, flags ...string) {
		found := w.adoptions(ctx, append(flags, name)...)[name]
		Expect(found.Result).To(Equal(inspect.AdoptionRefused))
		Expect(found.Message).To(ContainSubstring(
			"the stack kubemark does not support adoption: it has no adopt/ folder"))
		Expect(phaseOf(w.get(ctx, name))).To(Equal(machinev1beta1.PhaseRunning))
		f.untouched(ctx, name)
		Expect(w.stored(ctx, []string{name})).To(BeEmpty(), "it has a state")
	},
		Entry("where that is planned", "--plan"),
		Entry("where that is requested"),
	)
}

// foreigners are Machines whose Nodes something else created, and the Nodes' original properties by name.
type foreigners map[string]*seen

// seen is what was seen of a Node, which others write too.
type seen struct {
	uid        types.UID
	created    metav1.Time
	providerID string
	// owner is the UID of the Machine that it says it belongs to.
	owner string
}

// seenNode returns what there is of a Node, or nil.
func seenNode(ctx context.Context, name string) *seen {
	GinkgoHelper()
	node := &corev1.Node{}
	err := w.client.Get(ctx, types.NamespacedName{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return &seen{node.UID, node.CreationTimestamp, node.Spec.ProviderID, node.Labels[observe.UIDLabel]}
}

// madeElsewhere creates a cluster's Node as another actuator would, then its Machine in phase Running.
func (f foreigners) madeElsewhere(ctx context.Context, machine *machinev1beta1.Machine, cluster string) {
	GinkgoHelper()
	node := simulatedNode(machine.Name, cluster)
	w.create(ctx, node)
	f[machine.Name] = seenNode(ctx, machine.Name)
	machine.Finalizers = []string{machinev1beta1.MachineFinalizer}
	machine.Spec.ProviderID = &node.Spec.ProviderID
	w.create(ctx, machine)
	machine.Status.Phase = ptr.To(machinev1beta1.PhaseRunning)
	machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: node.UID}
	patch, err := json.Marshal(map[string]any{"status": machine.Status})
	Expect(err).NotTo(HaveOccurred())
	Expect(w.client.Status().Patch(ctx, machine, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// simulatedNode returns a Node as another cluster's actuator would create it.
func simulatedNode(name, cluster string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				"machine-iac.io/cluster-id": cluster, corev1.LabelInstanceTypeStable: "hollow",
				corev1.LabelTopologyRegion: "region-a", corev1.LabelTopologyZone: "zone-a",
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "kubemark://made-elsewhere/" + name},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
				corev1.ResourcePods: resource.MustParse("110"),
			},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}, {Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux"},
		},
	}
}

// forgotten removes Machines without a state, and their Nodes, as in "The way back" of the manual.
func (f foreigners) forgotten(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name}}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		Expect(client.IgnoreNotFound(w.client.Delete(ctx, machine))).To(Succeed())
		Expect(client.IgnoreNotFound(w.client.Patch(ctx, machine,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		Expect(client.IgnoreNotFound(w.client.Delete(ctx, node))).To(Succeed())
	}
	if len(w.stored(ctx, names)) == 0 {
		return
	}
	w.pod.restart(ctx) // the manager scans states at its start, and removes leftovers of rejected adoptions
	until(ctx, 2*patience, "no state of them is left", func(ctx context.Context) error {
		if left := w.stored(ctx, names); len(left) > 0 {
			return fmt.Errorf("there are those of %v", left)
		}
		return nil
	})
}

// same expects that the Nodes are the same objects.
func (f foreigners) same(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		found := seenNode(ctx, name)
		Expect(found).NotTo(BeNil(), name)
		found.owner = f[name].owner
		Expect(found).To(Equal(f[name]), name)
	}
}

// untouched expects that the Nodes are the same objects, and belong to no Machine.
func (f foreigners) untouched(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(seenNode(ctx, name)).To(Equal(f[name]), name)
	}
}

// stored returns the Machines that have a state.
func (w *world) stored(ctx context.Context, names []string) []string {
	GinkgoHelper()
	seen, err := w.census(ctx)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(seen.states,
			func(secret corev1.Secret) bool { return secret.Annotations[observe.OwnerAnnotation] == name })
	})
}

// fingerprint returns the fingerprint in a Machine's state.
func (w *world) fingerprint(ctx context.Context, name string) string {
	GinkgoHelper()
	seen, err := w.census(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, secret := range seen.states {
		if secret.Annotations[observe.OwnerAnnotation] == name {
			return secret.Annotations["machine-iac.io/fingerprint"]
		}
	}
	Fail("there is no state of " + name)
	return ""
}

var errStays = errors.New("it stays")

// adoptions runs kubectl machine adopt and returns its output by Machine. It ignores exit codes that report
// differences.
func (w *world) adoptions(ctx context.Context, arguments ...string) map[string]inspect.MachineAdoption {
	GinkgoHelper()
	command := exec.CommandContext(ctx, w.lab.Path("bin", "kubectl"),
		append([]string{"machine", "adopt", "-o", "json", "--namespace", lab.Namespace}, arguments...)...)
	command.Dir = w.dir
	command.Env = []string{"PATH=" + w.lab.Path("bin"), "KUBECONFIG=" + w.cluster.AdminKubeconfig(), "HOME=" + w.dir}
	var out, notes bytes.Buffer
	command.Stdout, command.Stderr = &out, &notes
	if err := command.Run(); err != nil {
		Expect(command.ProcessState.ExitCode()).To(Equal(2), "%v: %s%s", err, out.String(), notes.String())
	}
	var list inspect.AdoptionList
	Expect(json.Unmarshal(out.Bytes(), &list)).To(Succeed(), "%s%s", out.String(), notes.String())
	found := map[string]inspect.MachineAdoption{}
	for _, one := range list.Items {
		found[one.Machine] = one
	}
	return found
}
