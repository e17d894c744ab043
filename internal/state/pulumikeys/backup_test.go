package pulumikeys_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var _ = Describe("Keys in a backup", func() {
	It("are put back: all of them into a cluster without any, else those that it lacks", func(ctx SpecContext) {
		now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		keys := keysWith(plane.Client, suite.Namespace(ctx, plane), now)
		Expect(keys.Backup(ctx)).To(BeNil())
		first, err := keys.Rotate(ctx)
		Expect(err).NotTo(HaveOccurred())
		second, err := keys.Rotate(ctx)
		Expect(err).NotTo(HaveOccurred())
		kept, err := keys.Backup(ctx)
		Expect(err).NotTo(HaveOccurred())

		empty := keysWith(plane.Client, suite.Namespace(ctx, plane), now)
		Expect(empty.Restore(ctx, kept)).To(HaveLen(2))
		Expect(empty.Restore(ctx, kept)).To(BeEmpty())
		for _, salt := range []string{first.Salt, second.Salt} {
			_, err := empty.For(ctx, salt)
			Expect(err).NotTo(HaveOccurred())
		}
		current, err := empty.Current(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(current.Salt()).To(Equal(second.Salt))

		namespace := suite.Namespace(ctx, plane)
		other := keysWith(plane.Client, namespace, now)
		own, err := other.Rotate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(other.Restore(ctx, kept)).To(HaveLen(2))
		entries, err := other.List(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(3))
		Expect(entries[0].Salt).To(Equal(own.Salt))
		Expect(entries[0].Current).To(BeTrue())
		for _, entry := range entries[1:] {
			Expect(entry.Current).To(BeFalse())
			Expect(entry.Replaced).NotTo(BeZero())
		}
	})

	It("are refused where one has another passphrase, or the backup is not whole", func(ctx SpecContext) {
		now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		namespace := suite.Namespace(ctx, plane)
		keys := keysWith(plane.Client, namespace, now)
		one, err := keys.Rotate(ctx)
		Expect(err).NotTo(HaveOccurred())
		kept, err := keys.Backup(ctx)
		Expect(err).NotTo(HaveOccurred())
		before := secretIn(ctx, namespace)
		kept[one.ID+".passphrase"] = []byte("another")
		_, err = keys.Restore(ctx, kept)
		Expect(err).To(MatchError(ContainSubstring("has another passphrase in the backup")))
		delete(kept, one.ID+".salt")
		_, err = keys.Restore(ctx, kept)
		Expect(err).To(MatchError(ContainSubstring("lacks its passphrase or its salt")))
		Expect(secretIn(ctx, namespace)).To(Equal(before))
	})
})
