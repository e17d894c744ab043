package state_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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
	// takes, if set, lets time pass in each list.
	takes func()
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
			if r.takes != nil {
				r.takes()
			}
			if r.fails != nil {
				return r.fails
			}
			return c.List(ctx, list, options...)
		},
	})
}

var _ = Describe("States of which the versions are listed", func() {
	var api *reads
	var store *state.Store
	var now *clocktesting.FakeClock

	BeforeEach(func() {
		api, now = &reads{}, clocktesting.NewFakeClock(time.Now())
		store = state.New(api.client(), state.Options{Clock: now, Namespace: namespace})
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
			api.takes = func() { now.Step(10 * time.Second) } // as long as a list is valid
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
