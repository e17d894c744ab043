//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/test/chaos"
)

func aMachineThatCannotBeMade() {
	const lateSecret, unlabelledSecret = "late-credentials", "unlabelled-credentials"
	var name string

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		w.copySecret(ctx, unlabelledSecret)
		w.label(ctx, unlabelledSecret, "null")
		w.unguarded(ctx)
		DeferCleanup(func(ctx SpecContext) { w.guarded(ctx) })
	})
	BeforeEach(func() { name = "misfit-" + randomText()[:6] }) // names are unique
	AfterEach(func(ctx SpecContext) {
		if !CurrentSpecReport().Failed() {
			w.removed(ctx, name)
		}
	})

	DescribeTable("says what is wrong, makes nothing, and continues once it is fixed",
		func(ctx SpecContext, tc misfit) {
			w.create(ctx, w.machine(name, tc.change))
			w.says(ctx, name, tc)
			Expect(w.nodes.UIDs(name)).To(BeEmpty())
			tc.fix(ctx, name)
			w.runs(ctx, name)
			healed := w.get(ctx, name)
			Expect(healed.Status.ErrorMessage).To(BeNil())
			Expect(healed.Status.ErrorReason).To(BeNil())
			Expect(w.nodes.UIDs(name)).To(HaveLen(1))
		},
		Entry("because of a value of the wrong type", misfit{
			change: with("cpu", "four"), wantPhase: machinev1beta1.PhaseFailed,
			wantWords: []string{"cpu", "four", "number"},
			fix:       func(ctx context.Context, name string) { w.patchSpec(ctx, name, "cpu", 4) },
		}),
		Entry("because of a value that the module refuses", misfit{
			change: with("memory", "plenty"), wantPhase: machinev1beta1.PhaseFailed,
			wantWords: []string{"memory is a Kubernetes quantity", "16Gi"},
			fix:       func(ctx context.Context, name string) { w.patchSpec(ctx, name, "memory", "16Gi") },
		}),
		Entry("because of an unknown kind", misfit{
			change: with("kind", "MarbleMachineProviderConfig"), wantPhase: machinev1beta1.PhaseFailed,
			wantWords: []string{"MarbleMachineProviderConfig"},
			fix: func(ctx context.Context, name string) {
				w.patchSpec(ctx, name, "kind", on.kind)
			},
		}),
		Entry("because of a Secret that is not there", misfit{
			change: credentialsFrom(lateSecret), wantPhase: machinev1beta1.PhaseProvisioning,
			wantWords: []string{lateSecret, "does not exist"},
			fix: func(ctx context.Context, _ string) {
				w.copySecret(ctx, lateSecret)
			},
		}),
		Entry("because of a Secret that Machines may not use", misfit{
			change: credentialsFrom(unlabelledSecret), wantPhase: machinev1beta1.PhaseProvisioning,
			wantWords: []string{unlabelledSecret, "it has no label", "kubectl label secret"},
			fix: func(ctx context.Context, _ string) {
				w.label(ctx, unlabelledSecret, `"credentials"`)
			},
		}),
	)

	It("can be deleted though nobody understands it", func(ctx SpecContext) {
		w.create(ctx, w.machine(name, with("kind", "MarbleMachineProviderConfig")))
		until(ctx, patience, "it has failed", func(ctx context.Context) error {
			return phaseIs(w.get(ctx, name), machinev1beta1.PhaseFailed)
		})
	})
}

// misfit is a Machine that cannot be created.
type misfit struct {
	change    func(map[string]any)
	wantPhase string
	// wantWords appear in the Machine's messages.
	wantWords []string
	fix       func(ctx context.Context, name string)
}

// says waits until a Machine reports the problem in its condition, in an event and, if it failed, in its error fields.
func (w *world) says(ctx context.Context, name string, tc misfit) {
	GinkgoHelper()
	until(ctx, patience, "the Machine says what is wrong", func(ctx context.Context) error {
		machine := w.get(ctx, name)
		if err := phaseIs(machine, tc.wantPhase); err != nil {
			return err
		}
		exists := condition(machine, machinev1beta1.InstanceExistsCondition)
		if exists.Status != corev1.ConditionFalse || exists.Reason != machinev1beta1.InstanceNotCreatedReason {
			return fmt.Errorf("the condition InstanceExists is %s, %s", exists.Status, exists.Reason)
		}
		failed := tc.wantPhase == machinev1beta1.PhaseFailed
		for _, word := range tc.wantWords {
			if !strings.Contains(exists.Message, word) {
				return fmt.Errorf("the condition InstanceExists does not say %q: %s", word, exists.Message)
			}
			if failed && (machine.Status.ErrorMessage == nil || !strings.Contains(*machine.Status.ErrorMessage, word)) {
				return fmt.Errorf("errorMessage does not say %q: %v", word, machine.Status.ErrorMessage)
			}
		}
		if failed && (machine.Status.ErrorReason == nil ||
			*machine.Status.ErrorReason != machinev1beta1.InvalidConfigurationMachineError) {
			return fmt.Errorf("errorReason is %v", machine.Status.ErrorReason)
		}
		return nil
	})
	for _, word := range tc.wantWords {
		w.expectEvent(ctx, w.get(ctx, name), "FailedCreate", word)
	}
}

func aChangedProviderSpec() {
	const name = "changed"
	var uid types.UID

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		w.create(ctx, w.machine(name, chaos.Quicken))
		w.runs(ctx, name)
		uid = w.node(ctx, name).UID
		DeferCleanup(func(ctx SpecContext) { w.removed(ctx, name) })
	})

	It("is brought to the instance in place where it can take it", func(ctx SpecContext) {
		w.patchSpec(ctx, name, "zone", "zone-b")
		w.patchSpec(ctx, name, "labels", map[string]any{"example.com/team": "storage"})
		until(ctx, patience, "Node and Machine show the change", func(ctx context.Context) error {
			node, machine := w.node(ctx, name), w.get(ctx, name)
			got := []string{node.Labels["topology.kubernetes.io/zone"], node.Labels["example.com/team"],
				machine.Labels["machine.openshift.io/zone"]}
			if strings.Join(got, " ") != "zone-b storage zone-b" {
				return fmt.Errorf("zone and team of the Node and zone of the Machine are %q", got)
			}
			return w.upToDateIs(machine, corev1.ConditionTrue, "")
		})
		w.expectEvent(ctx, w.get(ctx, name), "Update", "in place")
		Expect(w.node(ctx, name).UID).To(Equal(uid))
	})

	It("is refused where only a new instance would bring it, and no update is started for it "+
		"again", func(ctx SpecContext) {
		w.patchSpec(ctx, name, "cpu", 8)
		until(ctx, patience, "the Machine refuses the change", func(ctx context.Context) error {
			return w.upToDateIs(w.get(ctx, name), corev1.ConditionFalse,
				string(machinev1beta1.UnsupportedChangeMachineError))
		})
		refused := w.get(ctx, name)
		Expect(phaseOf(refused)).To(Equal(machinev1beta1.PhaseRunning))
		Expect(condition(refused, upToDate).Message).To(ContainSubstring(on.instance))
		w.untouched(ctx, name, uid)

		before := w.updatesStarted(ctx)
		for poke := range 3 {
			w.kubectl(ctx, "annotate", "machine", name, "--overwrite", fmt.Sprintf("example.com/poke=%d", poke))
			time.Sleep(time.Second)
		}
		Expect(w.updatesStarted(ctx)).To(Equal(before), "an update was started for a change that is refused")
		Expect(w.upToDateIs(w.get(ctx, name), corev1.ConditionFalse,
			string(machinev1beta1.UnsupportedChangeMachineError))).To(Succeed())
		w.untouched(ctx, name, uid)
	})

	It("is forgotten when it is taken back", func(ctx SpecContext) {
		w.patchSpec(ctx, name, "cpu", 4)
		until(ctx, patience, "the Machine is up to date", func(ctx context.Context) error {
			return w.upToDateIs(w.get(ctx, name), corev1.ConditionTrue, "")
		})
		w.untouched(ctx, name, uid)
		w.settles(ctx, few+1)
	})

	It("hides nothing while it is refused: a drift check on request is made, and an instance that was removed is "+
		"noticed", func(ctx SpecContext) {
		w.patchSpec(ctx, name, "cpu", 8)
		until(ctx, patience, "the Machine refuses the change", func(ctx context.Context) error {
			return w.upToDateIs(w.get(ctx, name), corev1.ConditionFalse,
				string(machinev1beta1.UnsupportedChangeMachineError))
		})
		Expect(w.asksHere(ctx, "drift", name, "--now", "--wait=1m").out).To(MatchRegexp(row(name, "AsApplied")))
		Expect(w.upToDateIs(w.get(ctx, name), corev1.ConditionFalse,
			string(machinev1beta1.UnsupportedChangeMachineError))).To(Succeed())
		w.kubectl(ctx, "delete", "node", name)
		Expect(w.asksHere(ctx, "drift", name, "--now", "--wait=1m").out).To(MatchRegexp(row(name, "Missing")))
		until(ctx, patience, "the Machine has failed", func(ctx context.Context) error {
			if machine := w.get(ctx, name); phaseOf(machine) != machinev1beta1.PhaseFailed {
				return errors.New(describe([]machinev1beta1.Machine{*machine}))
			}
			return nil
		})
	})
}

func otherUserData() {
	const before, after = "before", "after"
	var starts float64

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		w.create(ctx, newSecret("rotated", map[string][]byte{"userData": []byte("first")}))
		w.create(ctx, w.machine(before, userDataFrom("rotated")))
		w.runs(ctx, before)
		DeferCleanup(func(ctx SpecContext) { w.removed(ctx, before) })
		w.settles(ctx, few+1)
		starts = w.updatesStarted(ctx)
	})

	unconcerned := func(ctx SpecContext) {
		GinkgoHelper()
		w.kubectl(ctx, "annotate", "machine", before,
			"--overwrite", "example.com/poke="+time.Now().Format("150405.000"))
		Consistently(ctx, func() error {
			return w.upToDateIs(w.get(ctx, before), corev1.ConditionTrue, "")
		}).WithTimeout(3 * time.Second).Should(Succeed())
		Expect(w.updatesStarted(ctx)).To(Equal(starts), "an update was started for a Secret that only a create reads")
	}

	It("concerns no instance that exists", func(ctx SpecContext) {
		w.kubectl(ctx, "patch", "secret", "rotated", "--type=merge", "--patch", `{"stringData":{"userData":"second"}}`)
		unconcerned(ctx)
	})

	It("keeps no Machine from anything where its Secret is deleted, but for a create", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "secret", "rotated")
		unconcerned(ctx)
		w.patchSpec(ctx, before, "zone", "zone-b")
		until(ctx, patience, "the Node shows the change", func(ctx context.Context) error {
			if zone := w.node(ctx, before).Labels["topology.kubernetes.io/zone"]; zone != "zone-b" {
				return fmt.Errorf("the Node is in %q", zone)
			}
			return w.upToDateIs(w.get(ctx, before), corev1.ConditionTrue, "")
		})
		w.create(ctx, w.machine(after, userDataFrom("rotated")))
		DeferCleanup(func(ctx SpecContext) { w.removed(ctx, after) })
		w.expectEvent(ctx, w.get(ctx, after), "FailedCreate", "rotated")
		w.create(ctx, newSecret("rotated", map[string][]byte{"userData": []byte("third")}))
		w.runs(ctx, after)
	})
}

func (w *world) upToDateIs(machine *machinev1beta1.Machine, status corev1.ConditionStatus, reason string) error {
	if got := condition(machine, upToDate); got.Status != status || got.Reason != reason {
		return errors.New("InstanceUpToDate is " + string(got.Status) + ", " + got.Reason + ": " + got.Message)
	}
	return nil
}

// untouched expects that the Node is the original one, with its original size.
func (w *world) untouched(ctx context.Context, name string, uid types.UID) {
	GinkgoHelper()
	node := w.node(ctx, name)
	Expect(node.UID).To(Equal(uid))
	Expect(node.Status.Capacity.Cpu().Value()).To(BeEquivalentTo(4))
}
