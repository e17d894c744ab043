package state_test

import (
	"bytes"
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

var _ = Describe("Attachments", func() {
	attached := func(ctx context.Context, key state.Key) state.Attachments {
		GinkgoHelper()
		stored, err := state.New(live, state.Options{}).Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		return stored.Attachments
	}

	It("go with the write that takes the lock, and with the next one of the session", func(ctx SpecContext) {
		counted := &faults{}
		store, key := state.New(counted.client(), state.Options{}), newKey()
		session, err := store.Acquire(ctx, key,
			state.AcquireOptions{Lock: run("r1"),
				Attachments: state.Attachments{"one": []byte("1"), "two": []byte("2")}})
		Expect(err).NotTo(HaveOccurred())
		Expect(attached(ctx, key)).To(Equal(state.Attachments{"one": []byte("1"), "two": []byte("2")}))

		Expect(session.Attach(ctx, state.Attachments{"one": nil})).To(Succeed())
		Expect(session.Attach(ctx, state.Attachments{"two": []byte("zwei")})).To(Succeed())
		Expect(attached(ctx, key)).To(HaveLen(2))
		Expect(session.Put(ctx, body(1, 10))).To(Succeed())
		Expect(attached(ctx, key)).To(HaveLen(2))
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(attached(ctx, key)).To(Equal(state.Attachments{"two": []byte("zwei")}))
		Expect(counted.count()).To(Equal(3))
	})

	It("are written once, although the response was lost", func(ctx SpecContext) {
		lossy := &faults{}
		store, key := state.New(lossy.client(), state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		lossy.set(func(f *faults) { f.loseAt = 2 })
		Expect(session.Attach(ctx, state.Attachments{"one": []byte("1")})).To(Succeed())
		Expect(session.SetMeta(ctx, nil)).To(Succeed())
		Expect(lossy.count()).To(Equal(3), "the lost one, and one that finds it done")
		Expect(attached(ctx, key)).To(Equal(state.Attachments{"one": []byte("1")}))
		Expect(session.SetMeta(ctx, nil)).To(Succeed())
		Expect(lossy.count()).To(Equal(3))
	})

	It("are another's affair no more than labels are: a change fences nobody off", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		touch(ctx, key, func(secret *corev1.Secret) { secret.Data = map[string][]byte{"machine-iac.one": []byte("1")} })
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(attached(ctx, key)).To(HaveLen(1))
	})

	It("leave room for the state", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		full := bytes.Repeat([]byte("x"), state.MaxAttachmentBytes)
		Expect(session.Attach(ctx, state.Attachments{"one": full})).To(Succeed())
		Expect(session.Attach(ctx, state.Attachments{"two": []byte("2")})).To(MatchError(ContainSubstring("room")))
		Expect(session.Put(ctx, body(1, 3<<20, "a"))).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(attached(ctx, key)).To(HaveKeyWithValue("one", full))
		By("refusing them with the lock as well")
		_, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2"),
			Attachments: state.Attachments{"two": []byte("2")}})
		Expect(err).To(MatchError(ContainSubstring("room")))
		Expect(head(ctx, key).Data).NotTo(HaveKey("machine-iac.two"))
	})

	It("go with their state", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session, err := store.Acquire(ctx, key,
			state.AcquireOptions{Lock: run("r1"), Attachments: state.Attachments{"one": []byte("1")}})
		Expect(err).NotTo(HaveOccurred())
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})
})
