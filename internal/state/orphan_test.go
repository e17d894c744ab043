package state_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

var _ = Describe("An orphaned state", func() {
	since := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	options := state.OrphanOptions{
		Reason: "the lock was lost while the engine ran", Missing: []statefile.ResourceID{{Address: "server.this",
			ID: "4711"}},
		Machine: "worker-a", MachineUID: "uid-a", Attachments: state.Attachments{"inputs": []byte("remembered")},
	}

	It("is kept once, listed and read, and is no state of the Machine's", func(ctx SpecContext) {
		for name, size := range map[string]int{"small": 100, "big": 30000} {
			By(name)
			key := newKey()
			store := state.New(live, state.Options{Clock: clocktesting.NewFakeClock(since), ChunkBytes: 8 << 10})
			stored := body(1, 100)
			session := acquire(ctx, store, key, run("r1"))
			Expect(session.Put(ctx, stored)).To(Succeed())
			unsaved := body(7, size, "this")
			kept, err := store.SaveOrphan(ctx, key, unsaved, options)
			Expect(err).NotTo(HaveOccurred())
			again, err := small(live).SaveOrphan(ctx, key, unsaved, options)
			Expect(err).NotTo(HaveOccurred())
			Expect(again).To(Equal(kept), "kept since the first time")
			Expect(kept).To(HaveValue(Equal(state.Orphan{
				Namespace: key.Namespace, Name: kept.Name, Key: key, Machine: "worker-a", MachineUID: "uid-a",
				Reason:  options.Reason,
				Missing: options.Missing, Serial: 7, Lineage: "lineage-1", Since: since,
			})))
			orphans, err := store.Orphans(ctx, key.Namespace)
			Expect(err).NotTo(HaveOccurred())
			Expect(orphans).To(ContainElement(*kept))

			raw, attached,
				err := store.ReadOrphan(ctx, types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name})
			Expect(err).NotTo(HaveOccurred())
			Expect(raw).To(Equal(unsaved))
			Expect(attached).To(Equal(options.Attachments))
			Expect(stockRead(ctx, key)).To(Equal(stored), "Terraform takes none of its Secrets for a part")
			Expect(store.List(ctx, key.Namespace)).To(HaveEach(HaveField("Key.Name", Not(ContainSubstring("orphan")))))
			Expect(session.Delete(ctx)).To(Succeed())

			Expect(live.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(key.Namespace))).To(Succeed())
			orphans, err = store.Orphans(ctx, key.Namespace)
			Expect(err).NotTo(HaveOccurred())
			Expect(orphans).To(ConsistOf(HaveField("Deleting", true)), "it is kept from who deletes everything")
			raw, _, err = store.ReadOrphan(ctx, types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name})
			Expect(err).NotTo(HaveOccurred())
			Expect(raw).To(Equal(unsaved))
			for range 2 {
				Expect(store.DeleteOrphan(ctx, types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name})).
					To(Succeed())
			}
			Expect(secretsOf(ctx, key, "")).To(BeEmpty())
		}
	})

	It("is kept whole by who comes after a crash", func(ctx SpecContext) {
		unsaved, key := body(7, 30000, "this"), newKey()
		for died := 1; ; died++ {
			api := &faults{dieAt: died}
			if _, err := small(api.client()).SaveOrphan(ctx, key, unsaved, options); err == nil {
				Expect(died).To(BeNumerically(">", 3))
				break
			}
			Expect(small(live).Orphans(ctx, namespace)).To(BeEmpty(), "what is listed can be read")
		}
		orphans, err := small(live).Orphans(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		raw, _, err := small(live).ReadOrphan(ctx, types.NamespacedName{Namespace: namespace, Name: orphans[0].Name})
		Expect(err).NotTo(HaveOccurred())
		Expect(raw).To(Equal(unsaved))
	})

	It("may be what is no state, and is then its content alone", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		kept, err := store.SaveOrphan(ctx, key, []byte("{half a sta"), state.OrphanOptions{Reason: "cut off"})
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.Serial).To(BeZero())
		raw, _, err := store.ReadOrphan(ctx, types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name})
		Expect(err).NotTo(HaveOccurred())
		Expect(raw).To(Equal([]byte("{half a sta")))
	})

	It("is nothing else that one names", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		acquire(ctx, store, key, run("r1"))
		name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
		_, _, err := store.ReadOrphan(ctx, name)
		Expect(err).To(MatchError(ContainSubstring("not an orphaned state")))
		Expect(store.DeleteOrphan(ctx, name)).To(MatchError(ContainSubstring("not an orphaned state")))
		Expect(secretsOf(ctx, key, "")).To(HaveLen(1))
	})
})
