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
// whose instances something else created.
func anotherActuatorsMachines(open func(context.Context) *platform) func() {
	return func() { adoptionOn(open) }
}

func adoptionOn(open func(context.Context) *platform) {
	var f *foreigners
	var names []string
	var other, deleted string

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		f = &foreigners{platform: open(ctx), before: map[string]*seenInstance{}}
		for i := range adopted {
			names = append(names, fmt.Sprintf("%s-%02d", f.prefix, i))
		}
		other, deleted = f.prefix+"-other", f.prefix+"-deleted"
		for _, name := range append([]string{deleted}, names...) {
			f.madeElsewhere(ctx, name, "")
		}
		f.madeElsewhere(ctx, other, "other-cluster")
		f.written = f.writesSoFar()
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
		Expect(w.node(ctx, f.nodeOf(deleted)).Spec.Unschedulable).To(BeFalse(), "its Node is drained")
	})

	It("shows what their adoption would do, and does nothing", func(ctx SpecContext) {
		asked := names[:f.planned]
		until(ctx, 2*patience, "each has a plan", func(ctx context.Context) error { // one may fail on a busy machine
			list := w.adoptions(ctx, append([]string{"--plan"}, asked...)...)
			for _, name := range asked {
				if !slices.Contains([]inspect.AdoptionResult{inspect.AdoptionClean, inspect.AdoptionDiffers},
					list[name].Result) || !slices.Contains(list[name].Imports, f.instance) {
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
		f.unchanged(ctx, names...)
	})

	It("finds no drift afterwards", func(ctx SpecContext) {
		begun := time.Now()
		w.pod.restart(ctx, append(f.flags, "--drift-interval=10s")...)
		DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx, f.flags...) })
		until(ctx, 2*patience, "each was checked", func(ctx context.Context) error {
			var wrong []error
			for _, name := range names {
				wrong = append(wrong, w.driftSince(ctx, begun, name, metav1.ConditionFalse))
			}
			return errors.Join(wrong...)
		})
		f.unchanged(ctx, names...)
	})

	It("edits one in place, and deletes another", func(ctx SpecContext) {
		before := w.fingerprint(ctx, names[0])
		f.edit(ctx, names[0])
		until(ctx, patience, "the edit is carried out", func(ctx context.Context) error {
			if w.fingerprint(ctx, names[0]) == before {
				return errors.New("the state is that of before")
			}
			return f.edited(ctx, names[0])
		})
		f.same(ctx, names[0])
		w.removed(ctx, names[1])
		Expect(f.look(ctx, names[1])).To(BeNil())
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
		until(ctx, patience, "Machine, Node and instance are gone", func(ctx context.Context) error {
			for _, object := range []client.Object{
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.nodeOf(deleted)}},
				&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: deleted}},
			} {
				if err := w.client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%T %s is there (%w)", object, object.GetName(), cmp.Or(err, errStays))
				}
			}
			if left := f.look(ctx, deleted); left != nil {
				return fmt.Errorf("its instance is there: %v", left.identity)
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
			into := filepath.Join(w.dir, fmt.Sprintf("released-%s-%d", f.prefix, attempt))
			// Rejected for a Machine on which a run has started meanwhile.
			printed, err := w.tries(ctx, append([]string{"release", "--namespace", lab.Namespace, "-o", into},
				stored...)...)
			if err != nil {
				return fmt.Errorf("releasing %d: %w: %s", len(stored), err, lastLines(printed.notes, 1))
			}
			return nil
		})
		for _, name := range names[1:] {
			Expect(f.look(ctx, name)).NotTo(BeNil())
			Expect(f.look(ctx, name).kept).To(Equal(f.before[name].kept), name)
		}
	})
}

// aMachineOfAStack tests a Machine of a stack, which cannot be adopted yet.
func aMachineOfAStack() {
	const name = "foreign-to-a-stack"
	var f *foreigners

	BeforeAll(func(ctx SpecContext) {
		stack, _ := chosen(onPulumi)
		f = &foreigners{platform: kubemarkElsewhere(ctx), before: map[string]*seenInstance{}}
		f.make = func(ctx context.Context, name, cluster string) *machinev1beta1.Machine {
			node := simulatedNode(name, cluster)
			w.create(ctx, node)
			machine := w.machineOn(stack, name)
			machine.Spec.ProviderID = &node.Spec.ProviderID
			return machine
		}
		f.madeElsewhere(ctx, name, "")
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

// foreigners are Machines whose instances something else created, and the instances' original properties.
type foreigners struct {
	*platform
	before  map[string]*seenInstance
	written []string
}

// madeElsewhere creates a cluster's instance as another actuator would, then its Machine in phase Running and its Node.
func (f *foreigners) madeElsewhere(ctx context.Context, name, cluster string) {
	GinkgoHelper()
	machine := f.make(ctx, name, cluster)
	f.before[name] = f.look(ctx, name)
	Expect(f.before[name]).NotTo(BeNil())
	machine.Finalizers = []string{machinev1beta1.MachineFinalizer}
	w.create(ctx, machine)
	if f.joins {
		(&fleet{}).join(ctx, machine)
	}
	machine.Status.Phase = ptr.To(machinev1beta1.PhaseRunning)
	machine.Status.NodeRef = &corev1.ObjectReference{
		Kind: "Node", Name: f.node(machine), UID: w.node(ctx, f.node(machine)).UID,
	}
	patch, err := json.Marshal(map[string]any{"status": machine.Status})
	Expect(err).NotTo(HaveOccurred())
	Expect(w.client.Status().Patch(ctx, machine, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// forgotten removes Machines without a state, and their Nodes, as in "The way back" of the manual.
func (f *foreigners) forgotten(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name}}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.nodeOf(name)}}
		Expect(client.IgnoreNotFound(w.client.Delete(ctx, machine))).To(Succeed())
		Expect(client.IgnoreNotFound(w.client.Patch(ctx, machine,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		Expect(client.IgnoreNotFound(w.client.Delete(ctx, node))).To(Succeed())
	}
	if len(w.stored(ctx, names)) == 0 {
		return
	}
	w.pod.restart(ctx, f.flags...) // the manager scans states at its start, and removes leftovers of rejected adoptions
	until(ctx, 2*patience, "no state of them is left", func(ctx context.Context) error {
		if left := w.stored(ctx, names); len(left) > 0 {
			return fmt.Errorf("there are those of %v", left)
		}
		return nil
	})
}

func (f *foreigners) nodeOf(name string) string {
	return f.node(&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func (f *foreigners) writesSoFar() []string {
	if f.writes == nil {
		return nil
	}
	return f.writes()
}

// same expects that the instances kept their identifiers and creation times.
func (f *foreigners) same(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		found := f.look(ctx, name)
		Expect(found).NotTo(BeNil(), name)
		Expect(found.identity).To(Equal(f.before[name].identity), name)
	}
}

// unchanged expects that the instances kept everything that an adoption must not change, and that no request wrote
// anything.
func (f *foreigners) unchanged(ctx context.Context, names ...string) {
	GinkgoHelper()
	f.same(ctx, names...)
	for _, name := range names {
		Expect(f.look(ctx, name).kept).To(Equal(f.before[name].kept), name)
	}
	Expect(f.writesSoFar()).To(Equal(f.written), "something was written")
}

// untouched expects that the instances are as before any adoption.
func (f *foreigners) untouched(ctx context.Context, names ...string) {
	GinkgoHelper()
	f.same(ctx, names...)
	for _, name := range names {
		Expect(f.look(ctx, name).whole).To(Equal(f.before[name].whole), name)
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
