package state_test

import (
	"context"
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// commits reports whether a write of the head commits the state with the serial.
func commits(object client.Object, key state.Key, serial string) bool {
	secret, ok := object.(*corev1.Secret)
	return ok && secret.Name == key.Name &&
		strings.Contains(secret.Annotations["machine-iac.io/record"], `"current":{"serial":`+serial+`,`)
}

// shortly is how long a caller waits for a delayed write.
const shortly = 300 * time.Millisecond

var _ = Describe("A commit of a big state that lands late", func() {
	// hold delays the commit of serial 2, like a slow API server, and returns no response to a caller with the context
	// short.
	hold := func(ctx context.Context, api *faults, key state.Key) (short context.Context, land func() error) {
		short, cancel := context.WithCancel(ctx)
		DeferCleanup(cancel)
		var held *corev1.Secret
		api.set(func(f *faults) {
			f.instead = func(_ string, object client.Object, do func() error) error {
				if !commits(object, key, "2") {
					return do()
				}
				held = object.DeepCopyObject().(*corev1.Secret)
				time.AfterFunc(shortly, cancel)
				return errAway
			}
		})
		return short, func() error { return live.Update(ctx, held) }
	}

	It("finds its copy when the session was released before it", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := small(api.client())
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 20000, "a"))).To(Succeed())
		short, land := hold(ctx, api, key)
		late := body(2, 30000, "a", "b")
		Expect(session.Put(short, late)).To(as[*state.UnavailableError](Not(BeNil())))

		landed := errors.New("never sent")
		api.set(func(f *faults) {
			f.instead = func(_ string, object client.Object, do func() error) error {
				if object.GetName() == key.Name && landed != nil {
					landed = land()
				}
				return do()
			}
		})
		err := session.Release(ctx, nil)
		Expect(landed).NotTo(HaveOccurred())
		Expect(err).To(as[*state.UnavailableError](Not(BeNil())), "the caller learns that the state is another than "+
			"it knew")
		Expect(store.Get(ctx, key)).To(HaveField("Raw", late))
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(store.Get(ctx, key)).To(HaveField("Raw", late))
		Expect(stockRead(ctx, key)).To(Equal(late))
	})

	It("finds its copy when the same run took the lock again before it", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := small(api.client())
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 20000, "a"))).To(Succeed())
		short, land := hold(ctx, api, key)
		late := body(2, 30000, "a", "b")
		Expect(session.Put(short, late)).To(as[*state.UnavailableError](Not(BeNil())))
		api.set(func(f *faults) { f.instead = nil })
		acquire(ctx, store, key, run("r1"))
		Expect(land()).To(Succeed())
		Expect(store.Get(ctx, key)).To(HaveField("Raw", late))
	})

	It("leaves nothing when it does not land at all", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := small(api.client())
		session := acquire(ctx, store, key, run("r1"))
		first := body(1, 20000)
		Expect(session.Put(ctx, first)).To(Succeed())
		short, land := hold(ctx, api, key)
		Expect(session.Put(short, body(2, 30000))).To(as[*state.UnavailableError](Not(BeNil())))
		api.set(func(f *faults) { f.instead = nil })
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(apierrors.IsConflict(land())).To(BeTrue())
		Expect(store.Get(ctx, key)).To(HaveField("Raw", first))
		Expect(acquire(ctx, store, key, run("r2")).Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})
})

var _ = Describe("A commit of a big state whose response was lost", func() {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "head",
		errors.New("the rules are not loaded yet"))
	for name, after := range map[string]func(f *faults) error{
		"with the API server away when the session looks what became of it": func(f *faults) error { return errAway },
		"with refusals after it": func(f *faults) error { return forbidden },
	} {
		It("keeps its copy, "+name, func(ctx SpecContext) {
			api, key := &faults{}, newKey()
			store := small(api.client())
			session := acquire(ctx, store, key, run("r1"))
			Expect(session.Put(ctx, body(1, 20000))).To(Succeed())
			next, sent := body(2, 30000), 0
			api.set(func(f *faults) {
				f.instead = func(_ string, object client.Object, do func() error) error {
					if !commits(object, key, "2") {
						return do()
					}
					if sent++; sent == 1 {
						Expect(do()).To(Succeed())
						return errAway
					}
					err := after(f)
					if errors.Is(err, errAway) {
						err = do()
						api.set(func(f *faults) { f.away = true })
					}
					return err
				}
			})
			bounded, cancel := context.WithTimeout(ctx, 20*shortly)
			defer cancel()
			Expect(session.Put(bounded, next)).NotTo(Succeed())
			Expect(sent).To(BeNumerically(">", 1))
			api.set(func(f *faults) { f.away, f.instead = false, nil })
			Expect(session.Release(ctx, nil)).To(Succeed())
			Expect(store.Get(ctx, key)).To(HaveField("Raw", next))
		})
	}
})

var _ = Describe("A copy", func() {
	It("that is made late, after its session was released, is removed by the next session", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := small(api.client())
		session := acquire(ctx, store, key, run("r1"))
		var held *corev1.Secret
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		api.set(func(f *faults) {
			f.instead = func(verb string, object client.Object, do func() error) error {
				if verb != "create" {
					return do()
				}
				held = object.DeepCopyObject().(*corev1.Secret)
				time.AfterFunc(shortly, cancel)
				return errAway
			}
		})
		Expect(session.Put(short, body(1, 20000))).To(as[*state.UnavailableError](Not(BeNil())))
		api.set(func(f *faults) { f.instead = nil })
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(live.Create(ctx, held)).To(Succeed())
		session = acquire(ctx, store, key, run("r2"))
		Expect(secretsOf(ctx, key, state.RoleVersion)).To(BeEmpty())
		Expect(session.Put(ctx, body(1, 20000))).To(Succeed())
	})

	It("that a session makes whose lock was broken meanwhile is removed by that session", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		stale := acquire(ctx, small(api.client()), key, term("r1", 1))
		Expect(stale.Put(ctx, body(1, 20000, "a"))).To(Succeed())
		var session *state.Session
		api.set(func(f *faults) {
			f.instead = func(verb string, _ client.Object, do func() error) error {
				if verb == "create" && session == nil {
					var err error
					session, err = small(live).Acquire(ctx, key,
						state.AcquireOptions{Lock: term("r2", 2), Break: ptr.To(term("r1", 1))})
					Expect(err).NotTo(HaveOccurred())
				}
				return do()
			}
		})
		Expect(stale.Put(ctx, body(2, 30000, "a"))).To(MatchError(state.ErrFenced))
		Expect(secretsOf(ctx, key, state.RoleVersion)).To(HaveEach(ContainSubstring("-v1-")))
		Expect(session.Put(ctx, body(2, 100))).To(Succeed())
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})
})
