package leadership_test

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/internal/leadership"
)

// The last of the suite: it takes etcd back.
var _ = Describe("A restore of etcd", Serial, func() {
	It("ends the term of a leader that led before and goes on, and the next term is younger", func(ctx SpecContext) {
		etcd := environment.ControlPlane.Etcd
		backup := filepath.Join(GinkgoT().TempDir(), "etcd")
		a := leads(ctx, "a")
		Expect(etcd.Stop()).To(Succeed())
		Expect(os.CopyFS(backup, os.DirFS(etcd.DataDir))).To(Succeed())
		Expect(etcd.Start()).To(Succeed())
		clock.Step(time.Second)
		Eventually(a.step).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Expect(a.Confirm(ctx)).To(Succeed(), "an API server that was away, and came back as it was")

		Expect(etcd.Stop()).To(Succeed())
		Expect(os.RemoveAll(etcd.DataDir)).To(Succeed())
		Expect(os.CopyFS(etcd.DataDir, os.DirFS(backup))).To(Succeed())
		Expect(etcd.Start()).To(Succeed())
		back := time.Now()
		clock.Step(time.Second)
		Eventually(a.Confirm).WithContext(ctx).WithTimeout(time.Minute).Should(And(
			MatchError(leadership.ErrNotLeader), MatchError(ContainSubstring("restored from a backup"))))
		Expect(a.Lost()).To(BeClosed())
		Expect(*theLease(ctx).Spec.HolderIdentity).To(Equal("a"), "the Lease itself says that it leads")
		Expect(succeeds(ctx, "b").Began()).To(BeTemporally(">=", back.Truncate(time.Second)))
	})
})
