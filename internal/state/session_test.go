package state_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func gzipped(raw []byte) []byte {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	_, _ = writer.Write(raw)
	_ = writer.Close()
	return buffer.Bytes()
}

// remove deletes Secrets despite the finalizer.
func remove(ctx context.Context, namespace string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		secret := &corev1.Secret{}
		Expect(live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)).To(Succeed())
		if controllerutil.RemoveFinalizer(secret, state.Finalizer) {
			Expect(live.Update(ctx, secret)).To(Succeed())
		}
		Expect(live.Delete(ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})).To(Succeed())
	}
}

// touch edits a head as a person would, bypassing the store.
func touch(ctx context.Context, key state.Key, change func(*corev1.Secret)) {
	GinkgoHelper()
	secret := head(ctx, key)
	change(secret)
	Expect(live.Update(ctx, secret)).To(Succeed())
}

var _ = Describe("The lock", func() {
	It("keeps others out", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		before := head(ctx, key).ResourceVersion
		_, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2")})
		Expect(err).To(as[*state.LockedError](HaveField("Lock", run("r1"))))
		Expect(head(ctx, key).ResourceVersion).To(Equal(before))
		Expect(session.Release(ctx, nil)).To(Succeed())
		acquire(ctx, store, key, run("r2"))
	})

	It("needs an owner and a run", func(ctx SpecContext) {
		_, err := state.New(live, state.Options{}).Acquire(ctx, newKey(),
			state.AcquireOptions{Lock: state.Lock{Owner: "o"}})
		Expect(err).To(MatchError(ContainSubstring("no owner or no run")))
	})

	It("is given to one of many who ask at once", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		var group sync.WaitGroup
		won := make(chan string, 8)
		for i := range cap(won) {
			group.Go(func() {
				lock := run(fmt.Sprintf("r%d", i))
				if _, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: lock}); err == nil {
					won <- lock.Run
				}
			})
		}
		group.Wait()
		Expect(won).To(HaveLen(1))
		Expect(store.Get(ctx, key)).To(HaveField("Lock.Run", <-won))
	})

	It("is broken only when it is the one that was proven stale", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		stale := acquire(ctx, store, key, run("r1"))
		other := run("r1")
		other.Since = other.Since.Add(time.Nanosecond)
		before := head(ctx, key).ResourceVersion
		_, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2"), Break: &other})
		Expect(err).To(as[*state.LockedError](HaveField("Lock.Run", "r1")))
		Expect(head(ctx, key).ResourceVersion).To(Equal(before))

		session, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2"), Break: ptr.To(run("r1"))})
		Expect(err).NotTo(HaveOccurred())
		before = head(ctx, key).ResourceVersion
		Expect(stale.Put(ctx, body(1, 100))).To(MatchError(state.ErrFenced))
		Expect(stale.SetMeta(ctx, state.MetaPatch{"a": ptr.To("b")})).To(MatchError(state.ErrFenced))
		Expect(stale.Release(ctx, nil)).To(MatchError(state.ErrFenced))
		Expect(stale.Delete(ctx)).To(MatchError(state.ErrFenced))
		_, err = stale.Snapshot(ctx)
		Expect(err).To(MatchError(state.ErrFenced))
		Expect(head(ctx, key).ResourceVersion).To(Equal(before), "a fenced session changes nothing")
		Expect(session.Put(ctx, body(1, 100))).To(Succeed())
	})

	It("fences off each kind of write on its own", func(ctx SpecContext) {
		for name, write := range map[string]func(*state.Session) error{
			"put":     func(s *state.Session) error { return s.Put(ctx, body(1, 100)) },
			"big put": func(s *state.Session) error { return s.Put(ctx, body(1, 30000)) },
			"meta":    func(s *state.Session) error { return s.SetMeta(ctx, state.MetaPatch{"a": ptr.To("b")}) },
			"release": func(s *state.Session) error { return s.Release(ctx, nil) },
			"delete":  func(s *state.Session) error { return s.Delete(ctx) },
		} {
			By(name)
			store, key := small(live), newKey()
			stale := acquire(ctx, store, key, run("r1"))
			_, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2"), Break: ptr.To(run("r1"))})
			Expect(err).NotTo(HaveOccurred())
			before := head(ctx, key).ResourceVersion
			Expect(write(stale)).To(MatchError(state.ErrFenced))
			Expect(head(ctx, key).ResourceVersion).To(Equal(before))
			Expect(secretsOf(ctx, key, "")).To(HaveLen(1))
		}
	})

	It("is lost when somebody removes it by hand or deletes the head", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		touch(ctx, key, func(s *corev1.Secret) { delete(s.Annotations, "machine-iac.io/lock") })
		Expect(session.Put(ctx, body(1, 100))).To(MatchError(state.ErrFenced))

		session = acquire(ctx, store, key, run("r2"))
		remove(ctx, key.Namespace, key.Name)
		Expect(session.Put(ctx, body(1, 100))).To(MatchError(state.ErrFenced))
		Expect(secretsOf(ctx, key, "")).To(BeEmpty(), "a deleted head stays deleted")
	})

	It("is taken again by the same run, and the session before is fenced off once this one writes",
		func(ctx SpecContext) {
			api, key := &faults{}, newKey()
			store := state.New(api.client(), state.Options{})
			before := acquire(ctx, store, key, run("r1"))
			again := acquire(ctx, store, key, run("r1"))
			Expect(api.count()).To(Equal(1))
			Expect(again.Put(ctx, body(1, 100))).To(Succeed())
			Expect(before.Put(ctx, body(1, 100))).To(MatchError(state.ErrFenced))
		})
})

var _ = Describe("A head that others touch", func() {
	It("can still be written while lock and state are the same", func(ctx SpecContext) {
		store, key := small(live), newKey()
		session := acquire(ctx, store, key, run("r1"))
		count := 0
		label := func() {
			count++
			touch(ctx, key, func(s *corev1.Secret) {
				s.Labels["team"] = fmt.Sprint(count)
				s.Annotations["example.com/note"] = "kept"
				if s.Data == nil {
					s.Data = map[string][]byte{}
				}
				s.Data["other"] = []byte("kept")
			})
		}
		label()
		Expect(session.Put(ctx, body(1, 100))).To(Succeed())
		label()
		Expect(session.Put(ctx, body(2, 20000))).To(Succeed())
		label()
		Expect(session.SetMeta(ctx, state.MetaPatch{"a": ptr.To("b")})).To(Succeed())
		label()
		Expect(session.Put(ctx, body(3, 100))).To(Succeed())
		secret := head(ctx, key)
		Expect(secret.Labels).To(HaveKeyWithValue("team", "4"))
		Expect(secret.Annotations).To(HaveKeyWithValue("example.com/note", "kept"))
		Expect(secret.Data).To(HaveKeyWithValue("other", []byte("kept")))
		label()
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})

	It("can be taken when it changes between read and write", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := state.New(api.client(), state.Options{})
		Expect(acquire(ctx, store, key, run("r1")).Release(ctx, nil)).To(Succeed())
		api.set(func(f *faults) {
			f.before = func() { touch(ctx, key, func(s *corev1.Secret) { s.Labels["team"] = "a" }) }
		})
		acquire(ctx, store, key, run("r2"))
		Expect(head(ctx, key).Labels).To(HaveKeyWithValue("team", "a"))
	})
})

// life runs all writes of a session, from creating to deleting the head.
func life(ctx context.Context, store *state.Store, key state.Key, bodies [][]byte) error {
	session, err := store.Acquire(ctx, key,
		state.AcquireOptions{Lock: run("r1"), Meta: state.MetaPatch{"intent": ptr.To("create")}})
	if err != nil {
		return err
	}
	for _, b := range bodies {
		if err := session.Put(ctx, b); err != nil {
			return err
		}
	}
	if err := session.Release(ctx, state.MetaPatch{"intent": nil}); err != nil {
		return err
	}
	session, err = store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2")})
	if err != nil {
		return err
	}
	return session.Delete(ctx)
}

var _ = Describe("A lost response", func() {
	It("changes nothing for the caller, whichever write it is of", func(ctx SpecContext) {
		bodies := [][]byte{body(1, 100), body(2, 20000), body(3, 5000), body(4, 100)}
		for lost := 1; ; lost++ {
			api, key := &faults{loseAt: lost}, newKey()
			Expect(life(ctx, small(api.client()), key, bodies)).To(Succeed(), "write %d", lost)
			Expect(secretsOf(ctx, key, "")).To(BeEmpty(), "write %d", lost)
			if api.count() < lost {
				Expect(lost).To(BeNumerically(">", 15))
				return
			}
		}
	})

	It("is cleared up by the next call when there was no time to", func(ctx SpecContext) {
		for name, write := range map[string]func(context.Context, *state.Session) error{
			"put": func(ctx context.Context, s *state.Session) error {
				return s.Put(ctx, []byte(`{"version":4,"serial":2,"lineage":"lineage-1"}`))
			},
			"meta": func(ctx context.Context, s *state.Session) error {
				return s.SetMeta(ctx, state.MetaPatch{"a": ptr.To("b")})
			},
			"release": func(ctx context.Context, s *state.Session) error { return s.Release(ctx, nil) },
			"delete":  func(ctx context.Context, s *state.Session) error { return s.Delete(ctx) },
		} {
			By(name)
			api, key := &faults{}, newKey()
			store := state.New(api.client(), state.Options{})
			session := acquire(ctx, store, key, run("r1"))
			Expect(session.Put(ctx, body(1, 100))).To(Succeed())
			api.set(func(f *faults) {
				f.loseAt = 3
				f.before = func() {
					time.AfterFunc(20*time.Millisecond, func() { api.set(func(f *faults) { f.away = true }) })
				}
			})
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			Expect(write(short, session)).To(as[*state.UnavailableError](Not(BeNil())))
			api.set(func(f *faults) { f.away = false })
			Expect(write(ctx, session)).To(Succeed())
			Expect(api.count()).To(BeNumerically("<=", 4), "the write was known to be done")
		}
	})
})

var _ = Describe("A process that dies between two writes", func() {
	sizes := map[string][2]int{
		"small to small":             {100, 100},
		"nothing fits the head":      {5000, 5000},
		"small to big":               {100, 20000},
		"big to bigger":              {20000, 30000},
		"big to smaller":             {30000, 20000},
		"big to small":               {30000, 100},
		"big to one without a place": {30000, 5000},
	}
	for name, size := range sizes {
		It("leaves a whole state and nothing lost: "+name, func(ctx SpecContext) {
			for died := 1; ; died++ {
				api, key := &faults{}, newKey()
				first, second := body(1, size[0], "a"), body(2, size[1], "a")
				doomed := acquire(ctx, small(api.client()), key, run("r1"))
				Expect(doomed.Put(ctx, first)).To(Succeed())
				api.set(func(f *faults) { f.dieAt = len(f.writes) + died })
				before := api.count()
				putErr := doomed.Put(ctx, second)

				store := small(live)
				seen, err := store.Get(ctx, key)
				Expect(err).NotTo(HaveOccurred(), "died at write %d", died)
				if putErr == nil {
					Expect(seen.Raw).To(Equal(second))
				} else {
					Expect(putErr).To(MatchError(errDied))
					Expect(seen.Raw).To(Equal(first), "a put that failed changed the state")
				}
				expectToGoOn(ctx, store, key, seen)
				if api.count()-before < died {
					return
				}
			}
		})
	}

	It("while it deletes leaves a state that can be deleted", func(ctx SpecContext) {
		for died := 1; ; died++ {
			api, key := &faults{}, newKey()
			doomed := acquire(ctx, small(api.client()), key, run("r1"))
			Expect(doomed.Put(ctx, body(1, 20000))).To(Succeed())
			Expect(doomed.Put(ctx, body(2, 30000))).To(Succeed())
			api.set(func(f *faults) { f.dieAt = len(f.writes) + died })
			if doomed.Delete(ctx) == nil {
				Expect(secretsOf(ctx, key, "")).To(BeEmpty())
				Expect(died).To(BeNumerically(">", 5))
				return
			}
			session, err := small(live).Acquire(ctx, key,
				state.AcquireOptions{Lock: run("r2"), Break: ptr.To(run("r1"))})
			Expect(err).NotTo(HaveOccurred(), "died at write %d", died)
			Expect(session.Delete(ctx)).To(Succeed())
			Expect(secretsOf(ctx, key, "")).To(BeEmpty(), "died at write %d", died)
		}
	})
})

// expectToGoOn takes over a dead run's state, writes it, and accounts for every Secret.
func expectToGoOn(ctx context.Context, store *state.Store, key state.Key, seen *state.Snapshot) {
	GinkgoHelper()
	session, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2"), Break: seen.Lock})
	Expect(err).NotTo(HaveOccurred())
	Expect(stockRead(ctx, key)).To(Equal(seen.Raw), "taking the state over repairs its parts")
	for serial := seen.Serial; serial > 0; serial-- {
		_, err := store.Version(ctx, key, serial)
		Expect(err).NotTo(HaveOccurred())
	}
	next := body(3, 20000)
	Expect(session.Put(ctx, next)).To(Succeed())
	Expect(stockRead(ctx, key)).To(Equal(next))
	Expect(session.Release(ctx, nil)).To(Succeed())
	session = acquire(ctx, store, key, run("r3"))
	Expect(session.Delete(ctx)).To(Succeed())
	Expect(secretsOf(ctx, key, "")).To(BeEmpty(), "a Secret was left that nothing accounts for")
}
