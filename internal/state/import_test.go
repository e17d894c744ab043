package state_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// importing returns options to import a state with everything that belongs to it.
func importing(raw []byte) state.ImportOptions {
	return state.ImportOptions{
		Raw: raw, Meta: state.MetaPatch{"fingerprint": ptr.To("f"),
			"stale": nil}, Labels: map[string]string{state.LabelMachineUID: "uid"},
		Annotations: map[string]string{state.AnnotationMachine: "m"},
		Attachments: state.Attachments{"inputs": []byte("inputs")},
		Lock: state.Lock{Owner: "import", Run: "import-1",
			Operation: "import"}, Guard: state.MetaPatch{"intent": ptr.To("guard")},
		Check: func(context.Context, *state.Snapshot) error { return nil },
	}
}

// stores returns a store in which a small state fits one Secret, and one in which it takes several.
func stores() map[string]*state.Store {
	return map[string]*state.Store{"one Secret": state.New(live, state.Options{}), "several Secrets": small(live)}
}

// imported expects a state with everything that belongs to it.
func imported(ctx context.Context, store *state.Store, key state.Key, raw []byte) *state.Snapshot {
	GinkgoHelper()
	seen, err := store.Get(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	Expect(seen.Raw).To(Equal(raw))
	Expect(stockRead(ctx, key)).To(Equal(raw))
	Expect(seen.Lock).To(BeNil())
	Expect(seen.Meta).To(Equal(map[string]string{"fingerprint": "f", "machine": "m"}))
	Expect(seen.Attachments).To(Equal(state.Attachments{"inputs": []byte("inputs")}))
	Expect(seen.Labels).To(HaveKeyWithValue(state.LabelMachineUID, "uid"))
	Expect(head(ctx, key).Finalizers).To(ContainElement(state.Finalizer))
	return seen
}

var _ = Describe("An imported state", func() {
	It("is there with all that belongs to it, and is gone on with", func(ctx SpecContext) {
		for name, store := range stores() {
			By(name)
			key, raw := newKey(), body(3, 20000, "a")
			Expect(store.Import(ctx, key, importing(raw))).To(Succeed())
			imported(ctx, store, key, raw)
			Expect(store.Import(ctx, key, importing(raw))).To(Succeed(), "again")
			session := acquire(ctx, store, key, run("r1"))
			Expect(session.Put(ctx, body(4, 100, "a"))).To(Succeed())
			Expect(session.Release(ctx, nil)).To(Succeed())
		}
	})

	It("takes one write where it fits one Secret", func(ctx SpecContext) {
		api := &faults{}
		Expect(state.New(api.client(), state.Options{}).Import(ctx, newKey(), importing(body(1, 100, "a")))).
			To(Succeed())
		Expect(api.writes).To(HaveLen(1))
	})

	It("follows an older one, which is kept, and leaves the epoch of the last leader", func(ctx SpecContext) {
		for name, store := range stores() {
			By(name)
			key, raw := newKey(), body(3, 20000, "a", "b")
			epoch := state.Epoch{Lease: "lease", Transitions: 7, Holder: "manager-1"}
			lock := run("r1")
			lock.Epoch = epoch
			older, err := store.Acquire(ctx, key,
				state.AcquireOptions{Lock: lock, Meta: state.MetaPatch{"stale": ptr.To("old")}})
			Expect(err).NotTo(HaveOccurred())
			before := body(2, 10000, "a")
			Expect(older.Put(ctx, before)).To(Succeed())
			Expect(older.Release(ctx, nil)).To(Succeed())
			Expect(store.Import(ctx, key, importing(raw))).To(Succeed())
			Expect(imported(ctx, store, key, raw).Epoch).To(Equal(epoch))
			Expect(store.Version(ctx, key, 2)).To(Equal(before))
		}
	})

	It("is refused where it may not follow, and nothing is written", func(ctx SpecContext) {
		unwanted := errors.New("not this one")
		for name, tc := range map[string]struct {
			raw   []byte
			check error
			held  bool
			want  OmegaMatcher
		}{
			"an older one": {raw: body(4, 100, "a"),
				want: as[*statefile.RefusedError](HaveField("Reason", statefile.ReasonSerial))},
			"another one of its serial": {raw: body(5, 100, "b"),
				want: as[*statefile.RefusedError](HaveField("Reason", statefile.ReasonSerial))},
			"one of another lineage": {raw: []byte(`{"version":4,"serial":9,"lineage":"other","resources":[]}`),
				want: as[*statefile.RefusedError](HaveField("Reason", statefile.ReasonLineage))},
			"what is no state": {raw: []byte(`{}`),
				want: as[*statefile.RefusedError](HaveField("Reason", statefile.ReasonCorrupt))},
			"one that the caller refuses": {raw: body(6, 100, "a"), check: unwanted, want: MatchError(unwanted)},
			"one while a run has the lock": {raw: body(6, 100, "a"), held: true,
				want: as[*state.LockedError](HaveField("Lock.Run", "r1"))},
		} {
			By(name)
			for _, limits := range []state.Options{{}, {ChunkBytes: 64, InlineBytes: 64}} {
				api := &faults{}
				store, key := state.New(api.client(), limits), newKey()
				session := acquire(ctx, store, key, run("r1"))
				Expect(session.Put(ctx, body(5, 100, "a"))).To(Succeed())
				if !tc.held {
					Expect(session.Release(ctx, nil)).To(Succeed())
				}
				before, writes := head(ctx, key), api.count()
				options := importing(tc.raw)
				options.Check = func(context.Context, *state.Snapshot) error { return tc.check }
				Expect(store.Import(ctx, key, options)).To(tc.want)
				Expect(api.count()).To(Equal(writes))
				Expect(head(ctx, key)).To(Equal(before))
			}
		}
	})

	It("is checked again where a run was faster", func(ctx SpecContext) {
		for _, limits := range []state.Options{{}, {ChunkBytes: 64, InlineBytes: 64}} {
			api, key, checked := &faults{}, newKey(), 0
			faster := state.New(live, limits)
			api.before = func() { acquire(ctx, faster, key, run("r1")) }
			options := importing(body(1, 1000, "a"))
			options.Check = func(context.Context, *state.Snapshot) error { checked++; return nil }
			Expect(state.New(api.client(), limits).Import(ctx, key,
				options)).To(as[*state.LockedError](HaveField("Lock.Run", "r1")))
			Expect(checked).To(BeNumerically(">=", 1))
			seen, err := faster.Get(ctx, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(seen.Raw).To(BeNil())
			Expect(seen.Meta).To(BeEmpty())
		}
	})

	It("is there whole, or says that it is not, wherever the import dies; and is imported again",
		func(ctx SpecContext) {
			for name, limits := range map[string]state.Options{"one Secret": {},
				"several Secrets": {ChunkBytes: 8 << 10, InlineBytes: 4 << 10}} {
				for _, older := range []bool{false, true} {
					whole := false
					for died := 1; !whole; died++ {
						By(name)
						api, key, raw := &faults{}, newKey(), body(3, 20000, "a")
						store := state.New(live, limits)
						if older {
							session := acquire(ctx, store, key, run("r1"))
							Expect(session.Put(ctx, body(2, 20000, "a"))).To(Succeed())
							Expect(session.Release(ctx, nil)).To(Succeed())
						}
						api.dieAt = died
						whole = state.New(api.client(), limits).Import(ctx, key, importing(raw)) == nil
						seen, err := store.Get(ctx, key)
						switch {
						case whole:
						case errors.Is(err, state.ErrNotFound):
							Expect(older).To(BeFalse())
						case seen.Serial == 3:
							Expect(seen.Raw).To(Equal(raw))
							Expect(seen.Meta).To(HaveKeyWithValue("fingerprint", "f"))
						case older:
							Expect(seen.Serial).To(Equal(uint64(2)))
						default:
							Expect(seen.Raw).To(BeNil())
							Expect(seen.Meta).To(HaveKeyWithValue("intent", "guard"))
						}
						options := importing(raw)
						options.Lock.Run = "import-2"
						Expect(store.Import(ctx, key, options)).To(Succeed())
						seen, err = store.Get(ctx, key)
						Expect(err).NotTo(HaveOccurred())
						Expect(seen.Raw).To(Equal(raw))
						Expect(seen.Meta).To(HaveKeyWithValue("fingerprint", "f"))
						Expect(seen.Lock).To(BeNil())
					}
				}
			}
		})

	It("is there where the response of the API server was lost", func(ctx SpecContext) {
		api, key, raw := &faults{loseAt: 1}, newKey(), body(1, 100, "a")
		store := state.New(api.client(), state.Options{Patience: 20 * time.Second})
		Expect(store.Import(ctx, key, importing(raw))).To(Succeed())
		imported(ctx, store, key, raw)
	})
})
