//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/test/chaos"
)

// twoEngines tests two MachineSets with different engines under one manager.
func twoEngines() {
	const otherSet = "beside"
	const all = 2 * few
	// machines returns the names of a set's Machines.
	machines := func(ctx context.Context, set string) []string {
		GinkgoHelper()
		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, machine := range seen.machines {
			if machine.Labels["machine.openshift.io/cluster-api-machineset"] == set {
				names = append(names, machine.Name)
			}
		}
		return names
	}
	uids := func(names []string) (all []types.UID) {
		for _, name := range names {
			all = append(all, w.nodes.UIDs(name)...)
		}
		return all
	}
	var mine, others []string

	BeforeAll(func(ctx SpecContext) {
		w.moves(ctx, chaos.Quicken)
		DeferCleanup(func(ctx SpecContext) { w.moves(ctx) })
		other := renamed(w.machineSetOn(beside, few), otherSet)
		changeSpec(&other.Spec.Template.Spec, chaos.Quicken)
		w.create(ctx, other)
		w.settles(ctx, all)
		mine, others = machines(ctx, setName), machines(ctx, otherSet)
	})

	It("make Machines that run alike, with the states of an engine each", func(ctx SpecContext) {
		Expect(mine).To(HaveLen(few))
		Expect(others).To(HaveLen(few))
		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, machine := range seen.machines {
			engine := on
			if slices.Contains(others, machine.Name) {
				engine = beside
			}
			known, err := seen.stateOf(&machine)
			Expect(err).NotTo(HaveOccurred())
			Expect(known.engine()).To(Equal(engine.name), machine.Name)
			Expect(machine.Spec.ProviderID).To(HaveValue(Equal("kubemark://" + string(machine.UID))))
			Expect(machine.Labels).To(HaveKeyWithValue("machine.openshift.io/instance-type", "hollow"))
			w.expectEvent(ctx, &machine, "Create", "Created the instance")
		}
	})

	It("are shown together by kubectl machine", func(ctx SpecContext) {
		tree := w.asksHere(ctx, "tree")
		Expect(tree.notes).To(BeEmpty())
		for _, set := range []string{setName, otherSet} {
			Expect(tree.out).To(MatchRegexp(row("MachineSet/"+set, fmt.Sprintf("%d/%d ready", few, few))))
		}
		for _, name := range slices.Concat(mine, others) {
			Expect(tree.out).To(MatchRegexp(
				`─ Instance/` + string(w.node(ctx, name).UID) + `\s+Running .*hollow; region-a; zone-a; kubemark-quick@`))
		}
	})

	It("are changed in place, each by its own", func(ctx SpecContext) {
		before := uids(slices.Concat(mine, others))
		w.patchSpecOn(ctx, on, mine[0], "zone", "zone-b")
		w.patchSpecOn(ctx, beside, others[0], "zone", "zone-c")
		for name, zone := range map[string]string{mine[0]: "zone-b", others[0]: "zone-c"} {
			until(ctx, patience, "Node and Machine "+name+" show the change", func(ctx context.Context) error {
				machine := w.get(ctx, name)
				if got := w.node(ctx, name).Labels["topology.kubernetes.io/zone"]; got != zone ||
					machine.Labels["machine.openshift.io/zone"] != zone {
					return errors.New("zone of the Node is " + got + ", of the Machine " +
						machine.Labels["machine.openshift.io/zone"])
				}
				return nil
			})
		}
		w.settles(ctx, all)
		Expect(uids(slices.Concat(mine, others))).To(Equal(before))
	})

	It("make Machines at once, each of them once though the manager is killed meanwhile, and "+
		"remove them", func(ctx SpecContext) {
		w.kubectl(ctx, "scale", "machineset", setName, otherSet, fmt.Sprintf("--replicas=%d", few+2))
		w.killAt(ctx, func() bool { return w.nodes.Count() > all })
		w.settles(ctx, all+4)
		w.kubectl(ctx, "scale", "machineset", setName, otherSet, fmt.Sprintf("--replicas=%d", few))
		w.settles(ctx, all)
		for _, engine := range machineries { // this manager has deleted two of each
			Expect(w.shows(ctx, "machine_iac_engine_starts_total", label("engine", engine.name))).To(
				BeNumerically(">=", 2), engine.name)
		}
	})

	It("go one at a time, and the other stays as it is", func(ctx SpecContext) {
		stays := machines(ctx, setName)
		before := uids(stays)
		w.kubectl(ctx, "delete", "machineset", otherSet)
		w.settles(ctx, few)
		Expect(machines(ctx, setName)).To(Equal(stays))
		Expect(uids(stays)).To(Equal(before))
	})
}
