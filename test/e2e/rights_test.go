//go:build e2e

package e2e_test

import (
	"maps"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/audit"
)

// usedElsewhere names the permissions that the story does not use, by the beginning of what they are called, and what does.
var usedElsewhere = map[string][]exempt{
	"machine-api-controllers": {},
	"machine-api-operator":    {},
}

// exempt are permissions that something else than the story uses.
type exempt struct{ permissions, by string }

func whatThePermissionsAreFor() {
	for _, account := range slices.Sorted(maps.Keys(usedElsewhere)) {
		It("is known of each one that "+account+" has, and it needs no other", func(ctx SpecContext) {
			granted, err := audit.Granted(ctx, w.client, lab.Namespace, account)
			Expect(err).NotTo(HaveOccurred())
			comparison := w.comparison(account, granted)
			say("    %d permissions, %d requests", len(granted), comparison.Calls)
			Expect(comparison.Calls).To(BeNumerically(">", 0))
			Expect(comparison.Forbidden).To(BeEmpty())
			if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings) > 0 || on.name != onTerraform {
				Skip("not all chapters were gone through")
			}
			var unused []string
			for _, permission := range comparison.Unused() {
				if !slices.ContainsFunc(usedElsewhere[account], func(e exempt) bool { return strings.HasPrefix(permission.String(), e.permissions) }) {
					unused = append(unused, permission.String())
				}
			}
			Expect(strings.Join(unused, "\n")).To(BeEmpty(), "nothing needs these permissions: remove them, or write down what does")
		})
	}
}

// comparison holds what an account has done against what it may do. Left out are tests that act in its name, and what was forbidden on purpose.
func (w *world) comparison(account string, granted []audit.Permission) *audit.Comparison {
	GinkgoHelper()
	log, err := os.Open(w.cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	comparison := audit.NewComparison(granted)
	Expect(audit.Read(log, func(c audit.Call) {
		provoked := slices.ContainsFunc(w.provoked, func(s span) bool { return c.Forbidden && s.from.Before(c.At) && c.At.Before(s.to) })
		if c.User == lab.UserOf(account) && !strings.HasPrefix(c.Agent, "kubectl/") && !provoked {
			comparison.Add(c)
		}
	})).To(Succeed())
	return comparison
}
