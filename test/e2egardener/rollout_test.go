//go:build e2e_gardener

package e2egardener_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// extent summarizes the Machines during a rollout.
type extent struct {
	// most is the maximum number of Machines that were not being deleted, fewest the minimum number of running ones.
	most, fewest int
	// mixed reports whether Machines of two classes existed at the same time.
	mixed bool
}

// rolls waits until all Machines are of a class.
func rolls(ctx SpecContext, class string, count int) extent {
	GinkgoHelper()
	seen := extent{fewest: count}
	Eventually(ctx, func(ctx SpecContext) error {
		list, err := machines(ctx, pool)
		if err != nil {
			return err
		}
		stay, run, classes := 0, 0, map[string]bool{}
		for _, m := range list {
			classes[m.Spec.Class.Name] = true
			if m.Metadata.DeletionTimestamp == "" {
				stay++
			}
			if m.Status.CurrentStatus.Phase == "Running" {
				run++
			}
		}
		seen.most, seen.fewest, seen.mixed = max(seen.most, stay), min(seen.fewest, run), seen.mixed || len(classes) > 1
		return allRun(list, class, count)
	}, 2*patience).Should(Succeed())
	return seen
}

func rollouts() {
	It("is rolled over to a new class with surge: no Machine goes before another runs", func(ctx SpecContext) {
		change(ctx, toClass("medium"))
		seen := rolls(ctx, "medium", 3)
		Expect(seen.most).To(BeNumerically(">", 3), "no Machine was made before another went")
		Expect(seen.fewest).To(Equal(3), "too few Machines ran")
	}, SpecTimeout(2*patience))

	It("is rolled over without surge: one Machine is unavailable at a time", func(ctx SpecContext) {
		change(ctx, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}`)
		change(ctx, toClass("big"))
		seen := rolls(ctx, "big", 3)
		Expect(seen.most).To(Equal(3), "there were more Machines than replicas")
		Expect(seen.fewest).To(Equal(2), "not one Machine at a time was unavailable")
	}, SpecTimeout(2*patience))

	It("is rolled back to the revision before", func(ctx SpecContext) {
		change(ctx, `{"spec":{"rollbackTo":{"revision":0}}}`)
		rolls(ctx, "medium", 3)
	}, SpecTimeout(2*patience))

	// If the class is not new, MCM does not wait: it considers a MachineSet without Machines as scaled.
	It("is not rolled over while it is paused, and then all at once where it is to be "+
		"recreated", func(ctx SpecContext) {
		change(ctx, `{"spec":{"paused":true,"template":{"spec":{"class":{"name":"large"}}}}}`)
		Consistently(ctx, running("medium", 3), aWhile).Should(Succeed())
		change(ctx, `{"spec":{"paused":false,"strategy":{"type":"Recreate","rollingUpdate":null}}}`)
		seen := rolls(ctx, "large", 3)
		Expect(seen.mixed).To(BeFalse(), "a Machine was made before all others were gone")
		// MCM's safety controllers do not support the other strategy.
		change(ctx, `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}}}`)
	}, SpecTimeout(2*patience))
}
