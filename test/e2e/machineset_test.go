//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/chaos"
)

// upToDate reports whether the instance matches its providerSpec.
const upToDate = machinev1beta1.ConditionType("InstanceUpToDate")

func aMachineSet() {
	It("that is applied gets three running Machines, each with one Node and one state", func(ctx SpecContext) {
		w.create(ctx, w.machineSet(3))
		w.settles(ctx, 3)
	})

	It("has on each Machine what the instance is", func(ctx SpecContext) {
		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		for i := range seen.machines {
			machine, node := &seen.machines[i], seen.nodeOf(&seen.machines[i])
			Expect(machine.Spec.ProviderID).To(HaveValue(Equal("kubemark://" + string(machine.UID))))
			Expect(node.Spec.ProviderID).To(Equal(*machine.Spec.ProviderID))
			Expect(machine.Status.Addresses).To(ConsistOf(node.Status.Addresses))
			Expect(machine.Status.Addresses).To(
				ContainElement(corev1.NodeAddress{Type: corev1.NodeHostName, Address: machine.Name}))
			Expect(machine.Labels).To(And(
				HaveKeyWithValue("machine.openshift.io/region", "region-a"),
				HaveKeyWithValue("machine.openshift.io/zone", "zone-a"),
				HaveKeyWithValue("machine.openshift.io/instance-type", "hollow"),
			))
			Expect(machine.Annotations).To(HaveKeyWithValue("machine.openshift.io/instance-state", "Running"))
			Expect(node.Labels).To(HaveKey("node-role.kubernetes.io/worker"),
				"what the Machine wants its Node to carry")
		}
	})

	It("reports on each Machine, in conditions and events, that all is well", func(ctx SpecContext) {
		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		for i := range seen.machines {
			machine := &seen.machines[i]
			for _, kind := range []machinev1beta1.ConditionType{
				machinev1beta1.InstanceExistsCondition, machinev1beta1.MachineDrainable,
				machinev1beta1.MachineTerminable, upToDate,
			} {
				Expect(condition(machine, kind).Status).To(Equal(corev1.ConditionTrue), "%s of %s", kind,
					describe(seen.machines[i:i+1]))
			}
			Expect(machine.Status.ErrorMessage).To(BeNil())
			w.expectEvent(ctx, machine, "Create", "Created the instance")
		}
	})

	It("grows to twenty Machines", func(ctx SpecContext) {
		w.scale(ctx, 20)
		w.settles(ctx, 20)
	})

	It("shrinks to two Machines, and leaves nothing behind", func(ctx SpecContext) {
		w.scale(ctx, 2)
		w.settles(ctx, 2)
	})
}

// expectEvent waits for an event about an object, since events are sent in the background.
func (w *world) expectEvent(ctx context.Context, object client.Object, reason, part string) {
	GinkgoHelper()
	until(ctx, 20*time.Second, fmt.Sprintf("%s has an event %s", object.GetName(),
		reason), func(ctx context.Context) error {
		notes, err := w.events(ctx, object, reason)
		if err != nil {
			return err
		}
		matches, err := ContainElement(ContainSubstring(part)).Match(notes)
		if err == nil && !matches {
			err = fmt.Errorf("its events of that reason are %q, none has %q", notes, part)
		}
		return err
	})
}

func anInstanceRemoved() {
	var lost *machinev1beta1.Machine

	BeforeAll(func(ctx SpecContext) {
		w.moves(ctx, chaos.Quicken)
		DeferCleanup(func(ctx SpecContext) { w.moves(ctx) })
		w.pod.restart(ctx, "--drift-interval=10s")
		DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
	})

	It("makes its Machine fail at the next drift check, and the Machine says why", func(ctx SpecContext) {
		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		lost = &seen.machines[0]
		w.kubectl(ctx, "delete", "node", lost.Name)
		until(ctx, time.Minute, "Machine "+lost.Name+" has failed", func(ctx context.Context) error {
			lost = w.get(ctx, lost.Name)
			if phaseOf(lost) != machinev1beta1.PhaseFailed {
				return errors.New(describe([]machinev1beta1.Machine{*lost}))
			}
			return nil
		})
		Expect(lost.Status.ErrorMessage).To(HaveValue(Equal("can't find created instance")))
		exists := condition(lost, machinev1beta1.InstanceExistsCondition)
		Expect(exists.Status).To(Equal(corev1.ConditionFalse))
		Expect(exists.Reason).To(Equal(machinev1beta1.InstanceMissingReason))
		w.expectEvent(ctx, lost, "DriftMissing", "removed outside this operator")
		Expect(w.asksHere(ctx, "drift", "--drifted").out).To(MatchRegexp(row(lost.Name, "Missing", `\d+m?s`, `\d+m?s`)))
	})

	It("is not made again by itself, and the other Machines go on", func(ctx SpecContext) {
		Consistently(ctx, func() (int, error) {
			seen, err := w.census(ctx)
			return len(seen.nodes), err
		}).WithTimeout(12 * time.Second).WithPolling(time.Second).Should(Equal(1))
		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		running := slices.DeleteFunc(seen.machines,
			func(m machinev1beta1.Machine) bool { return phaseOf(&m) != machinev1beta1.PhaseRunning })
		Expect(running).To(HaveLen(1))
	})

	It("is replaced by the MachineSet when its Machine is deleted", func(ctx SpecContext) {
		w.pod.restart(ctx) // drift checks would acquire and release locks
		w.removed(ctx, lost.Name)
		w.settles(ctx, 2)
	})
}

func aDeletedMachineSet() {
	BeforeAll(func(ctx SpecContext) { w.replicas(ctx, 2) })

	It("takes its Machines, their Nodes and their states with it", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "machineset", setName)
		w.settles(ctx, 0)
	})

	It("leaves no engine run behind", func(ctx SpecContext) {
		Expect(w.atRest()).To(Succeed())
		for _, name := range []string{"machine_iac_runs_queued", "machine_iac_runs_running"} {
			Expect(w.metric(ctx, name)).To(BeZero(), name)
		}
	})

	It("lets the manager end at once, with nothing left running", func(context.Context) {
		state, took := w.pod.terminate()
		Expect(state.ExitCode()).To(BeZero())
		Expect(took).To(BeNumerically("<", 10*time.Second))
		Expect(w.engines()).To(BeEmpty())
	})
}

func aManagerThatServes() {
	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few+1) // a restarted manager has no series yet
		w.replicas(ctx, few)
	})

	It("shows its metrics to those who may read them, and to nobody else", func(ctx SpecContext) {
		status, _, err := w.pod.current().Scrape(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden))
		anybody := strings.TrimSpace(w.kubectl(ctx, "create", "token", "default"))
		status, _, err = w.pod.current().Scrape(ctx, anybody)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusForbidden))
		Expect(w.metrics(ctx)).To(ContainSubstring("\nmachine_iac_runs_running{"))
		for _, name := range []string{
			"mapi_machine_phase_transition_seconds_count", "machine_iac_engine_starts_total",
		} {
			Expect(w.metric(ctx, name)).To(BeNumerically(">", 0), name)
		}
	})

	It("may do what it needs, and no more", func(ctx SpecContext) {
		Expect(w.asOperator(ctx, "get", "secrets", "--namespace", lab.Namespace)).NotTo(BeEmpty())
		for _, where := range []string{"--namespace=kube-system", "--namespace=default", "--all-namespaces"} {
			_, err := w.asOperator(ctx, "get", "secrets", where)
			Expect(err).To(MatchError(ContainSubstring("is forbidden")), where)
		}
		for _, question := range [][]string{
			{"create", "nodes"}, {"create", "pods"}, {"update", "machinesets.machine.openshift.io"},
			{"get", "configmaps"}, {"impersonate", "users"},
		} {
			output, _ := w.asOperator(ctx,
				append([]string{"auth", "can-i", "--namespace", lab.Namespace}, question...)...)
			Expect(output).To(HavePrefix("no"), "%v", question)
		}
		Expect(w.logLines("forbidden")).To(BeEmpty(), "the manager has met with a right that it lacks")
	})

	It("keeps secrets to itself", func(ctx SpecContext) {
		Expect(w.atRest()).To(Succeed())
		Expect(w.secretsShown(ctx)).To(BeEmpty())
	})
}
