package state_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

var _ = Describe("A state from before a run", func() {
	It("is put back under a higher serial, whatever the run wrote since", func(ctx SpecContext) {
		for name, store := range map[string]*state.Store{"small": state.New(live, state.Options{}),
			"big": small(live)} {
			By(name)
			key := newKey()
			session := acquire(ctx, store, key, run("r1"))
			before := body(3, 20000, "a", "b")
			Expect(session.Put(ctx, before)).To(Succeed())
			for serial := 4; serial <= 12; serial++ {
				Expect(session.Put(ctx, body(serial, 100))).To(Succeed())
			}
			Expect(session.Restore(ctx, before)).To(Equal(uint64(13)))
			Expect(session.Restore(ctx, before)).To(Equal(uint64(13)), "it is current already")
			seen, err := store.Get(ctx, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(seen.Serial).To(Equal(uint64(13)))
			Expect(seen.Raw).To(MatchJSON(strings.Replace(string(before), `"serial":3`, `"serial":13`, 1)))
			Expect(stockRead(ctx, key)).To(Equal(seen.Raw))
			Expect(session.Delete(ctx)).To(as[*state.ResourcesRemainError](Not(BeNil())))
			Expect(session.Put(ctx, body(14, 100))).To(Succeed(), "the next run goes on from it")
			Expect(session.Release(ctx, nil)).To(Succeed())
		}
	})

	It("of Pulumi's is put back with its checkpoint unchanged", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		checkpoint := `{"version":3,"checkpoint":{"latest":{"manifest":{"version":"v3"},"resources":[{"urn":"urn:pulumi:s::p::t::n","custom":true,"type":"t","id":"1"}]}}}`
		with := func(serial uint64, checkpoint string) []byte {
			raw, err := statefile.Checkpoint{Serial: serial, Lineage: "l1", Raw: []byte(checkpoint)}.Encode()
			Expect(err).NotTo(HaveOccurred())
			return raw
		}
		Expect(session.Put(ctx, with(1, checkpoint))).To(Succeed())
		Expect(session.Put(ctx, with(2, `{"version":3,"checkpoint":{}}`))).To(Succeed())
		Expect(session.Restore(ctx, with(1, checkpoint))).To(Equal(uint64(3)))
		seen, err := store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		read, err := statefile.ParseCheckpoint(seen.Raw)
		Expect(err).NotTo(HaveOccurred())
		Expect(read.Serial).To(Equal(uint64(3)))
		Expect(read.Raw).To(MatchJSON(checkpoint))
	})

	It("of another lineage, or none at all, is refused", func(ctx SpecContext) {
		key := newKey()
		session := acquire(ctx, state.New(live, state.Options{}), key, run("r1"))
		Expect(session.Put(ctx, body(5, 100))).To(Succeed())
		before := head(ctx, key).ResourceVersion
		_, err := session.Restore(ctx, []byte(`{"version":4,"serial":9,"lineage":"other"}`))
		Expect(err).To(as[*statefile.RefusedError](HaveField("Reason", statefile.ReasonLineage)))
		_, err = session.Restore(ctx, []byte(`{`))
		Expect(err).To(as[*statefile.RefusedError](HaveField("Reason", statefile.ReasonCorrupt)))
		Expect(head(ctx, key).ResourceVersion).To(Equal(before))
	})

	It("is put back once though the response was lost", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		session := acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1"))
		first := body(1, 100, "a")
		Expect(session.Put(ctx, first)).To(Succeed())
		Expect(session.Put(ctx, body(2, 100))).To(Succeed())
		api.set(func(f *faults) {
			f.loseAt = len(f.writes) + 1
			f.before = func() {
				time.AfterFunc(20*time.Millisecond, func() { api.set(func(f *faults) { f.away = true }) })
			}
		})
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err := session.Restore(short, first)
		Expect(err).To(as[*state.UnavailableError](Not(BeNil())))
		api.set(func(f *faults) { f.away = false })
		Expect(session.Restore(ctx, first)).To(Equal(uint64(3)))
	})
})
