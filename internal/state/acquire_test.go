package state_test

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// term returns a lock of one leadership term.
func term(name string, transitions int64) state.Lock {
	lock := run(name)
	lock.Epoch = state.Epoch{Lease: "lease-1", Transitions: transitions, Holder: "manager-" + name}
	return lock
}

var _ = Describe("A lock that is being taken when the caller gives up", func() {
	It("is known to the caller", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := state.New(api.client(), state.Options{})
		for _, name := range []string{"r1", "r2"} { // the first creates the head
			stopped, stop := context.WithCancel(ctx)
			api.set(func(f *faults) { f.before = stop })
			session, err := store.Acquire(stopped, key, state.AcquireOptions{Lock: run(name)})
			Expect(err).NotTo(HaveOccurred())
			Expect(stopped.Err()).To(HaveOccurred())
			Expect(session.Release(ctx, nil)).To(Succeed())
			Expect(store.Get(ctx, key)).To(HaveField("Lock", BeNil()))
		}
	})

	It("is not taken where the caller has given up before", func(ctx SpecContext) {
		key := newKey()
		store := state.New(live, state.Options{})
		stopped, stop := context.WithCancel(ctx)
		_, err := store.Acquire(stopped, key, state.AcquireOptions{
			Lock:   run("r1"),
			Decide: func(context.Context, *state.Snapshot) (state.Change, error) { stop(); return state.Change{}, nil },
		})
		Expect(err).To(as[*state.UnavailableError](Not(BeNil())))
		_, err = store.Get(ctx, key)
		Expect(err).To(MatchError(state.ErrNotFound))
	})
})

var _ = Describe("A decision under the lock", func() {
	It("is recorded by the write that takes the lock", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := state.New(api.client(), state.Options{})
		session, err := store.Acquire(ctx, key, state.AcquireOptions{
			Lock: run("r1"), Meta: state.MetaPatch{"a": ptr.To("1"),
				"b": ptr.To("1")}, Attachments: state.Attachments{"x": []byte("1"), "y": []byte("1")},
			Decide: func(_ context.Context, seen *state.Snapshot) (state.Change, error) {
				Expect(seen.Raw).To(BeNil())
				Expect(seen.ResourceVersion).To(BeEmpty())
				return state.Change{
					Operation: "destroy", Meta: state.MetaPatch{"b": ptr.To("2")},
					Attachments: state.Attachments{"y": []byte("2")},
				}, nil
			},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(session.Lock().Operation).To(Equal("destroy"))
		Expect(api.writes).To(Equal([]string{"create " + key.Name}))
		seen, err := store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Lock.Operation).To(Equal("destroy"))
		Expect(seen.Meta).To(Equal(map[string]string{"a": "1", "b": "2"}))
		Expect(seen.Attachments).To(Equal(state.Attachments{"x": []byte("1"), "y": []byte("2")}))
		Expect(session.Put(ctx, body(1, 100))).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())

		session, err = store.Acquire(ctx, key,
			state.AcquireOptions{Lock: run("r2"),
				Decide: func(_ context.Context, seen *state.Snapshot) (state.Change, error) {
					Expect(seen.Serial).To(Equal(uint64(1)))
					Expect(seen.ResourceVersion).To(Equal(head(ctx, key).ResourceVersion))
					return state.Change{}, nil
				}})
		Expect(err).NotTo(HaveOccurred())
		Expect(session.Lock().Operation).To(Equal("create"), "the lock's own, as none was decided")
	})

	It("that fails writes nothing, and its error is returned as it is", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		refused := errors.New("refused")
		_, err := state.New(api.client(), state.Options{}).Acquire(ctx, key, state.AcquireOptions{
			Lock: run("r1"), Decide: func(context.Context, *state.Snapshot) (state.Change,
				error) {
				return state.Change{}, refused
			},
		})
		Expect(err).To(BeIdenticalTo(refused))
		Expect(api.count()).To(BeZero())
	})

	It("is not asked for while another holds the lock", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		acquire(ctx, store, key, run("r1"))
		_, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2"),
			Decide: func(context.Context, *state.Snapshot) (state.Change, error) {
				Fail("decided over a lock")
				return state.Change{}, nil
			}})
		Expect(err).To(as[*state.LockedError](Not(BeNil())))
	})

	It("is taken again over what was written meanwhile", func(ctx SpecContext) {
		for name, prepare := range map[string]func(state.Key){
			"no head": func(state.Key) {},
			"a head": func(key state.Key) {
				Expect(acquire(ctx, small(live), key, run("r0")).Release(ctx, nil)).To(Succeed())
			},
		} {
			By(name)
			api, key := &faults{}, newKey()
			prepare(key)
			api.set(func(f *faults) {
				f.before = func() {
					session, err := small(live).Acquire(ctx, key,
						state.AcquireOptions{Lock: run("r1"), Meta: state.MetaPatch{"n": ptr.To("1")}})
					Expect(err).NotTo(HaveOccurred())
					Expect(session.Release(ctx, nil)).To(Succeed())
				}
			})
			var seen []string
			count := func(_ context.Context, s *state.Snapshot) (state.Change, error) {
				seen = append(seen, s.Meta["n"])
				return state.Change{Meta: state.MetaPatch{"n": ptr.To(s.Meta["n"] + "+")}}, nil
			}
			_, err := small(api.client()).Acquire(ctx, key, state.AcquireOptions{Lock: run("r2"), Decide: count})
			Expect(err).NotTo(HaveOccurred())
			Expect(seen).To(Equal([]string{"", "1"}))
			Expect(small(live).Get(ctx, key)).To(HaveField("Meta", HaveKeyWithValue("n", "1+")))
		}
	})

	It("is not taken again over its own record when the response to its write was lost", func(ctx SpecContext) {
		for name, made := range map[string]bool{"no head": false, "a head": true} {
			By(name)
			api, key := &faults{}, newKey()
			if made {
				Expect(acquire(ctx, small(live), key, run("r0")).Release(ctx, nil)).To(Succeed())
			}
			api.set(func(f *faults) { f.loseAt = 1 })
			decided := 0
			session, err := small(api.client()).Acquire(ctx, key,
				state.AcquireOptions{Lock: run("r1"),
					Decide: func(_ context.Context, s *state.Snapshot) (state.Change, error) {
						decided++
						return state.Change{Operation: "update", Meta: state.MetaPatch{"intent": ptr.To("new")}}, nil
					}})
			Expect(err).NotTo(HaveOccurred())
			Expect(decided).To(Equal(1))
			Expect(session.Lock().Operation).To(Equal("update"))
			Expect(session.Put(ctx, body(1, 20000))).To(Succeed())
		}
	})
})

var _ = Describe("An epoch", func() {
	It("is kept with the lock and, once that is given back, with the head", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		lock := term("r1", 3)
		session := acquire(ctx, store, key, lock)
		Expect(store.Get(ctx, key)).To(HaveField("Lock.Epoch", lock.Epoch))
		Expect(session.Release(ctx, nil)).To(Succeed())
		seen, err := store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Epoch).To(Equal(lock.Epoch))
		Expect(seen.Meta).To(BeEmpty(), "the epoch is the store's own")
		Expect(head(ctx, key).Annotations).To(HaveKeyWithValue("machine-iac.io/epoch",
			`{"lease":"lease-1","transitions":3,"holder":"manager-r1"}`))
		heads, err := store.List(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(heads[0].Epoch).To(Equal(lock.Epoch))
		session = acquire(ctx, store, key, run("r2"))
		Expect(session.SetMeta(ctx,
			state.MetaPatch{"epoch": ptr.To("mine")})).To(MatchError(ContainSubstring("use another name")))
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(store.Get(ctx, key)).To(HaveField("Epoch", lock.Epoch), "who leads nothing leaves it")
	})

	It("that is over takes no lock, free or held", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		later := term("r2", 4)
		session := acquire(ctx, store, key, later)
		refused := func() {
			GinkgoHelper()
			before := head(ctx, key).ResourceVersion
			_, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: term("r1", 3), Break: ptr.To(later),
				Decide: func(context.Context, *state.Snapshot) (state.Change, error) {
					Fail("decided in an epoch that is over")
					return state.Change{}, nil
				}})
			Expect(err).To(as[*state.SupersededError](Equal(&state.SupersededError{Key: key, Held: later.Epoch})))
			Expect(err).To(MatchError(state.ErrFenced))
			Expect(head(ctx, key).ResourceVersion).To(Equal(before))
		}
		refused()
		touch(ctx, key, func(s *corev1.Secret) { delete(s.Annotations, "machine-iac.io/epoch") })
		refused()
		Expect(session.Release(ctx, nil)).To(Succeed())
		refused()
		acquire(ctx, store, key, term("r3", 4))
	})

	It("fences off the sessions of the one before", func(ctx SpecContext) {
		for name, write := range map[string]func(*state.Session) error{
			"put":     func(s *state.Session) error { return s.Put(ctx, body(1, 100)) },
			"big put": func(s *state.Session) error { return s.Put(ctx, body(1, 30000)) },
			"meta":    func(s *state.Session) error { return s.SetMeta(ctx, state.MetaPatch{"a": ptr.To("b")}) },
			"release": func(s *state.Session) error { return s.Release(ctx, nil) },
			"delete":  func(s *state.Session) error { return s.Delete(ctx) },
		} {
			By(name)
			store, key := small(live), newKey()
			stale := acquire(ctx, store, key, term("r1", 1))
			session,
				err := store.Acquire(ctx, key, state.AcquireOptions{Lock: term("r2", 2), Break: ptr.To(term("r1", 1))})
			Expect(err).NotTo(HaveOccurred())
			Expect(session.Release(ctx, nil)).To(Succeed())
			before := head(ctx, key).ResourceVersion
			for range 2 {
				err := write(stale)
				Expect(err).To(as[*state.SupersededError](HaveField("Held", term("r2", 2).Epoch)))
				Expect(err).To(MatchError(state.ErrFenced))
			}
			Expect(head(ctx, key).ResourceVersion).To(Equal(before))
			Expect(secretsOf(ctx, key, "")).To(HaveLen(1))
		}
	})

	It("that was refuted does not count, nor one before it, but a later one does", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		Expect(acquire(ctx, store, key, term("r1", 1)).Release(ctx, nil)).To(Succeed())
		forge := func(annotation, transitions string) {
			touch(ctx, key, func(s *corev1.Secret) {
				s.Annotations["machine-iac.io/"+
					annotation] = fmt.Sprintf(
					`{"owner":"x","run":"x","since":"2026-01-01T00:00:00Z","lease":"lease-1","transitions":%[1]s,
					"epoch":{"lease":"lease-1","transitions":%[1]s}}`, transitions)
			})
		}
		take := func(refuted int64) (*state.Session, error) {
			return store.Acquire(ctx, key, state.AcquireOptions{Lock: term("r2", 2),
				Refuted: state.Epoch{Lease: "lease-1", Transitions: refuted}})
		}
		forge("epoch", "1000000000000000000")
		_, err := take(1e18 - 1)
		Expect(err).To(as[*state.SupersededError](HaveField("Held.Transitions", int64(1e18))))
		session, err := take(1e18)
		Expect(err).NotTo(HaveOccurred())
		Expect(session.Put(ctx, body(1, 100, "this"))).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(store.Get(ctx, key)).To(HaveField("Epoch", term("r2", 2).Epoch))

		forge("lock", "7")
		_, err = take(6)
		Expect(err).To(as[*state.SupersededError](HaveField("Held.Transitions", int64(7))))
		_, err = take(8)
		Expect(err).To(as[*state.LockedError](HaveField("Lock.Epoch.Transitions", int64(7))),
			"whose engines are another matter")
	})

	It("that cannot be read takes no lock", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		Expect(acquire(ctx, store, key, term("r1", 1)).Release(ctx, nil)).To(Succeed())
		touch(ctx, key, func(s *corev1.Secret) { s.Annotations["machine-iac.io/epoch"] = "{" })
		_, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: term("r2", 2)})
		Expect(err).To(as[*state.CorruptError](HaveField("Detail", ContainSubstring("machine-iac.io/epoch"))))
	})

	It("makes another lock", func() {
		lock, other := term("r1", 1), term("r1", 1)
		Expect(lock.Equal(other)).To(BeTrue())
		other.Epoch.Transitions++
		Expect(lock.Equal(other)).To(BeFalse())
	})
})
