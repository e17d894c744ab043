package state_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// deleteHead deletes a head as kubectl does.
func deleteHead(ctx context.Context, key state.Key) {
	GinkgoHelper()
	Expect(live.Delete(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})).To(Succeed())
}

// deleteNamespace simulates the deletion of a namespace: creates fail, and all Secrets are deleted.
func deleteNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(live.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	Eventually(func() error {
		return live.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, GenerateName: "probe-"}},
			client.DryRunAll)
	}, 10*time.Second, 50*time.Millisecond).Should(MatchError(ContainSubstring("being terminated")))
	Expect(live.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(name))).To(Succeed())
}

var _ = Describe("A head that somebody deletes", func() {
	It("stays, is locked, written and released, and goes with the session's delete", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 100, "a"))).To(Succeed())
		Expect(store.Get(ctx, key)).To(HaveField("Deleting", false))
		deleteHead(ctx, key)
		Expect(session.Put(ctx, body(2, 100, "a"))).To(Succeed(), "the run goes on")
		Expect(session.Release(ctx, nil)).To(Succeed())

		Expect(store.Get(ctx, key)).To(And(HaveField("Deleting", true), HaveField("Serial", uint64(2))))
		heads, err := store.List(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(heads[0].Deleting).To(BeTrue())
		session = acquire(ctx, store, key, run("r2"))
		Expect(session.Delete(ctx)).To(as[*state.ResourcesRemainError](Not(BeNil())))
		Expect(session.Put(ctx, body(3, 100))).To(Succeed())
		Expect(session.SetMeta(ctx, state.MetaPatch{"a": ptr.To("b")})).To(Succeed())
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
		Expect(session.Delete(ctx)).To(Succeed())
	})

	It("while its session deletes it, is gone in the end", func(ctx SpecContext) {
		for write := 1; write <= 3; write++ {
			api, key := &faults{}, newKey()
			session := acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1"))
			number := 0
			api.set(func(f *faults) {
				f.instead = func(_ string, _ client.Object, do func() error) error {
					if number++; number == write {
						deleteHead(ctx, key)
					}
					return do()
				}
			})
			Expect(session.Delete(ctx)).To(Succeed(), "deleted ahead of write %d", write)
			Expect(secretsOf(ctx, key, "")).To(BeEmpty())
		}
	})

	It("is deleted though the response to whichever write is lost", func(ctx SpecContext) {
		for lost := 1; lost <= 3; lost++ {
			api, key := &faults{}, newKey()
			session := acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1"))
			deleteHead(ctx, key)
			api.set(func(f *faults) { f.loseAt = len(f.writes) + lost })
			Expect(session.Delete(ctx)).To(Succeed(), "lost the response to write %d", lost)
			Expect(secretsOf(ctx, key, "")).To(BeEmpty())
		}
	})

	It("is known to be gone by the next call when there was no time for the response", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		session := acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1"))
		deleteHead(ctx, key)
		api.set(func(f *faults) {
			f.instead = func(_ string, _ client.Object, do func() error) error {
				if err := do(); err != nil { // the deletion timestamp changed the head
					return err
				}
				api.set(func(f *faults) { f.away = true })
				return errAway
			}
		})
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		Expect(session.Delete(short)).To(as[*state.UnavailableError](Not(BeNil())))
		api.set(func(f *faults) { f.away, f.instead = false, nil })
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})
})

var _ = Describe("The finalizer", func() {
	It("is put on a head that was made without it, by who locks it", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		Expect(acquire(ctx, store, key, run("r1")).Release(ctx, nil)).To(Succeed())
		touch(ctx, key, func(s *corev1.Secret) { s.Finalizers = []string{"example.com/other"} })
		session := acquire(ctx, store, key, run("r2"))
		Expect(head(ctx, key).Finalizers).To(ConsistOf("example.com/other", state.Finalizer))
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(head(ctx, key).Finalizers).To(ConsistOf("example.com/other"), "another's stays")
		touch(ctx, key, func(s *corev1.Secret) { s.Finalizers = nil })
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})

	It("comes back when the session that took it off dies before the delete", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		session := acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1"))
		api.set(func(f *faults) { f.dieAt = len(f.writes) + 2 })
		Expect(session.Delete(ctx)).To(MatchError(errDied))
		Expect(head(ctx, key).Finalizers).To(BeEmpty())
		next, err := state.New(live, state.Options{}).Acquire(ctx,
			key, state.AcquireOptions{Lock: run("r2"), Break: ptr.To(run("r1"))})
		Expect(err).NotTo(HaveOccurred())
		Expect(head(ctx, key).Finalizers).To(ConsistOf(state.Finalizer))
		Expect(next.Delete(ctx)).To(Succeed())
	})
})

var _ = Describe("A namespace that is deleted", func() {
	It("keeps a big state readable until it was destroyed", func(ctx SpecContext) {
		store, key := small(live), newKey()
		session := acquire(ctx, store, key, run("r1"))
		big := body(2, 30000, "a")
		Expect(session.Put(ctx, body(1, 20000, "a"))).To(Succeed())
		Expect(session.Put(ctx, big)).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		deleteNamespace(ctx, namespace)
		Expect(secretsOf(ctx, key, state.RolePart)).To(BeEmpty())
		Expect(store.Get(ctx, key)).To(HaveField("Raw", big))

		session = acquire(ctx, store, key, run("r2"))
		Expect(session.Put(ctx, body(3, 30000, "a"))).To(MatchError(ContainSubstring("being terminated")),
			"there is no room for it")
		Expect(store.Get(ctx, key)).To(HaveField("Raw", big))
		Expect(session.Put(ctx, body(4, 100))).To(Succeed())
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})

	It("lets a state be written whose earlier versions have no room in the head", func(ctx SpecContext) {
		store, key := small(live), newKey()
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 3000, "a"))).To(Succeed())
		deleteNamespace(ctx, namespace)
		next := body(2, 3000)
		Expect(session.Put(ctx, next)).To(Succeed())
		Expect(store.Get(ctx, key)).To(HaveField("Raw", next))
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})
})
