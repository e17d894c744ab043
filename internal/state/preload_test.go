package state_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// reads counts single reads and lists. It fails requests for lists on demand.
type reads struct {
	gets, lists int
	fails       error
	// listed, if set, runs after each list.
	listed func()
}

func (r *reads) client() client.Client {
	return interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			r.gets++
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			r.lists++
			if r.fails != nil {
				return r.fails
			}
			err := c.List(ctx, list, options...)
			if r.listed != nil {
				r.listed()
			}
			return err
		},
	})
}

// early is a clock whose waits end when the test says so.
type early struct {
	clock.RealClock
	over chan time.Time
}

func (e *early) After(time.Duration) <-chan time.Time { return e.over }

var _ = Describe("States that are read together", func() {
	var api *reads
	var store *state.Store
	var patience *early

	BeforeEach(func() {
		api, patience = &reads{}, &early{over: make(chan time.Time)}
		store = state.New(api.client(), state.Options{Clock: patience})
	})

	stored := func(ctx context.Context) state.Key {
		GinkgoHelper()
		key := newKey()
		session := acquire(ctx, state.New(live, state.Options{}), key, run("r1"))
		Expect(session.Put(ctx, body(1, 100, "this"))).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		return key
	}
	begin := func(ctx context.Context) (ended chan error) {
		ended = make(chan error, 1)
		preload := store.Preload(namespace)
		go func() { ended <- preload.Start(ctx) }()
		return ended
	}
	serial := func(ctx context.Context, key state.Key) uint64 {
		GinkgoHelper()
		seen, err := store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		return seen.Serial
	}

	It("serve the first Get of each", func(ctx SpecContext) {
		keys := []state.Key{stored(ctx), stored(ctx), stored(ctx)}
		begin(ctx)
		ahead := func(key state.Key) bool {
			GinkgoHelper()
			seen, err := store.Get(ctx, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(seen.Serial).To(Equal(uint64(1)))
			return seen.ReadAhead
		}
		for _, key := range keys {
			Expect(ahead(key)).To(BeTrue())
		}
		Expect(api.gets).To(BeZero())
		Expect(ahead(keys[0])).To(BeFalse())
		Expect(api.gets).To(Equal(1), "the second Get reads the API server")
		_, err := store.Get(ctx, newKey())
		Expect(err).To(MatchError(state.ErrNotFound))
	})

	It("do not count after this process has changed them", func(ctx SpecContext) {
		before, meanwhile := stored(ctx), stored(ctx)
		change := func(key state.Key) {
			GinkgoHelper()
			session := acquire(ctx, store, key, run("r2"))
			Expect(session.Put(ctx, body(2, 100, "this"))).To(Succeed())
			Expect(session.Release(ctx, state.MetaPatch{"changed": ptr.To("yes")})).To(Succeed())
		}
		api.listed = func() { change(meanwhile) } // like a run between the list and its use
		begin(ctx)
		Expect(serial(ctx, meanwhile)).To(Equal(uint64(2)))
		change(before)
		Expect(serial(ctx, before)).To(Equal(uint64(2)))
	})

	It("do not count for long", func(ctx SpecContext) {
		key := stored(ctx)
		ended := begin(ctx)
		Expect(serial(ctx, stored(ctx))).To(Equal(uint64(1))) // once they were read
		close(patience.over)
		Eventually(ended).Should(Receive(BeNil()))
		api.gets = 0
		Expect(serial(ctx, key)).To(Equal(uint64(1)))
		Expect(api.gets).To(Equal(1))
	})

	It("are read one by one where they cannot be read together", func(ctx SpecContext) {
		key := stored(ctx)
		api.fails = errors.New("no lists today")
		begin(ctx)
		Expect(serial(ctx, key)).To(Equal(uint64(1)))
		Expect(api.gets).To(Equal(1))
	})
})

var _ = Describe("States of which the versions are listed", func() {
	var api *reads
	var store *state.Store
	var now *clocktesting.FakeClock

	BeforeEach(func() {
		api, now = &reads{}, clocktesting.NewFakeClock(time.Now())
		store = state.New(api.client(), state.Options{Clock: now})
		store.Preload(namespace)
	})

	It("are unchanged until their version is another, and all found out in one list", func(ctx SpecContext) {
		others := state.New(live, state.Options{})
		versions := map[state.Key]string{}
		for range 3 {
			key := newKey()
			session := acquire(ctx, others, key, run("r1"))
			Expect(session.Put(ctx, body(1, 100, "this"))).To(Succeed())
			Expect(session.Release(ctx, nil)).To(Succeed())
			snapshot, err := others.Get(ctx, key)
			Expect(err).NotTo(HaveOccurred())
			versions[key] = snapshot.ResourceVersion
		}
		for key, version := range versions {
			Expect(store.Unchanged(ctx, key, version)).To(BeTrue())
		}
		pages := api.lists
		Expect(store.Unchanged(ctx, newKey(), "")).To(BeFalse(), "there is none")
		Expect(api.lists).To(Equal(pages), "a list counts for all")
		Expect(api.gets).To(BeZero())

		for key, version := range versions {
			session := acquire(ctx, others, key, run("r2"))
			Expect(session.Release(ctx, state.MetaPatch{"changed": ptr.To("yes")})).To(Succeed())
			now.Step(11 * time.Second)
			Expect(store.Unchanged(ctx, key, version)).To(BeFalse())
		}
		Expect(api.lists).To(Equal(4 * pages))
	})

	It("are not said to be unchanged where they cannot be listed, and that is not tried for each",
		func(ctx SpecContext) {
			api.fails = errors.New("no lists today")
			for range 3 {
				Expect(store.Unchanged(ctx, newKey(), "1")).To(BeFalse())
			}
			Expect(api.lists).To(Equal(1))
		})

	It("are not said to be unchanged in another namespace, or without a namespace", func(ctx SpecContext) {
		Expect(store.Unchanged(ctx, state.Key{Namespace: "another", Name: "tfstate-default-x"}, "1")).To(BeFalse())
		Expect(state.New(live, state.Options{}).Unchanged(ctx, newKey(), "1")).To(BeFalse())
	})
})
