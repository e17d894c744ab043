package state_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

var _ = Describe("A state's life", func() {
	It("costs one write for each of acquire, put and release", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := state.New(api.client(), state.Options{})
		_, err := store.Get(ctx, key)
		Expect(err).To(MatchError(state.ErrNotFound))

		session, err := store.Acquire(ctx, key, state.AcquireOptions{
			Lock:        run("r1"),
			Meta:        state.MetaPatch{"intent": ptr.To("create")},
			Labels:      map[string]string{state.LabelMachineUID: "uid-1"},
			Annotations: map[string]string{state.AnnotationMachine: "worker-a"},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(api.writes).To(Equal([]string{"create " + key.Name}))
		seen, err := store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Raw).To(BeNil())
		Expect(seen.Lock).To(HaveValue(Equal(run("r1"))))
		Expect(seen.Meta).To(Equal(map[string]string{"intent": "create", "machine": "worker-a"}))

		first := body(1, 100, "this")
		Expect(session.Put(ctx, first)).To(Succeed())
		Expect(api.count()).To(Equal(2))
		Expect(session.Put(ctx, first)).To(Succeed())
		Expect(api.count()).To(Equal(2), "the same state again is no write")
		Expect(session.SetMeta(ctx, state.MetaPatch{"intent": ptr.To("create"), "absent": nil})).To(Succeed())
		Expect(api.count()).To(Equal(2), "the same meta again is no write")

		Expect(session.Release(ctx, state.MetaPatch{"intent": nil, "hash": ptr.To("abc")})).To(Succeed())
		Expect(api.count()).To(Equal(3))
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(session.Put(ctx, body(2, 100))).To(MatchError(state.ErrClosed))
		Expect(api.count()).To(Equal(3))

		seen, err = store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Raw).To(Equal(first))
		Expect(seen.Serial).To(Equal(uint64(1)))
		Expect(seen.Lineage).To(Equal("lineage-1"))
		Expect(seen.Lock).To(BeNil())
		Expect(seen.Meta).To(Equal(map[string]string{"hash": "abc", "machine": "worker-a"}))
		parsed, err := seen.State()
		Expect(err).NotTo(HaveOccurred())
		Expect(parsed.Managed()).To(HaveLen(1))
	})

	It("has the layout of Terraform's kubernetes backend", func(ctx SpecContext) {
		key := newKey()
		session := acquire(ctx, state.New(live, state.Options{}), key, run("r1"))
		for serial := 1; serial <= 5; serial++ {
			Expect(session.Put(ctx, body(serial, 100))).To(Succeed())
		}
		secret := head(ctx, key)
		Expect(secret.Name).To(Equal("tfstate-default-" + key.Suffix()))
		Expect(secret.Labels).To(HaveKeyWithValue("tfstate", "true"))
		Expect(secret.Labels).To(HaveKeyWithValue("tfstateSecretSuffix", key.Suffix()))
		Expect(secret.Labels).To(HaveKeyWithValue("tfstateWorkspace", "default"))
		Expect(secret.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "terraform"))
		Expect(secret.Annotations).To(HaveKeyWithValue("encoding", "gzip"))
		Expect(secret.Data).To(HaveLen(4), "the state and three versions")
		seen, err := session.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(stockRead(ctx, key)).To(Equal(seen.Raw))
	})

	It("keeps the last three versions", func(ctx SpecContext) {
		for name, store := range map[string]*state.Store{"in the head": state.New(live, state.Options{}),
			"in Secrets": small(live)} {
			By(name)
			key := newKey()
			session := acquire(ctx, store, key, run("r1"))
			bodies := map[int][]byte{}
			for serial := 1; serial <= 6; serial++ {
				bodies[serial] = body(serial, 3000, "this")
				Expect(session.Put(ctx, bodies[serial])).To(Succeed())
			}
			versions, err := store.Versions(ctx, key)
			Expect(err).NotTo(HaveOccurred())
			var serials []uint64
			for i, version := range versions {
				serials = append(serials, version.Serial)
				Expect(version.Current).To(Equal(i == 0))
				Expect(version.Managed).To(Equal(1))
				Expect(version.Size).To(Equal(len(bodies[int(version.Serial)])))
			}
			Expect(serials).To(Equal([]uint64{6, 5, 4, 3}))
			for serial := 3; serial <= 6; serial++ {
				Expect(store.Version(ctx, key, uint64(serial))).To(Equal(bodies[serial]))
			}
			_, err = store.Version(ctx, key, 2)
			Expect(err).To(MatchError(state.ErrNotFound))
			Expect(session.Release(ctx, nil)).To(Succeed())
			if name == "in the head" {
				Expect(secretsOf(ctx, key, "")).To(HaveLen(1))
			} else {
				Expect(secretsOf(ctx, key, state.RoleVersion)).To(HaveLen(3))
			}
		}
	})

	It("refuses what may not follow and changes nothing", func(ctx SpecContext) {
		key := newKey()
		session := acquire(ctx, state.New(live, state.Options{}), key, run("r1"))
		Expect(session.Put(ctx, body(5, 100))).To(Succeed())
		before := head(ctx, key).ResourceVersion
		for reason, bad := range map[statefile.Reason][]byte{
			statefile.ReasonCorrupt: []byte(`{"version":4`),
			statefile.ReasonSerial:  body(4, 100),
			statefile.ReasonLineage: []byte(`{"version":4,"serial":9,"lineage":"other"}`),
		} {
			Expect(session.Put(ctx, bad)).To(as[*statefile.RefusedError](HaveField("Reason", reason)))
		}
		Expect(session.Put(ctx, body(5, 100))).
			To(as[*statefile.RefusedError](HaveField("Reason", statefile.ReasonSerial)))
		Expect(session.SetMeta(ctx,
			state.MetaPatch{"lock": ptr.To("mine")})).To(MatchError(ContainSubstring("use another name")))
		Expect(head(ctx, key).ResourceVersion).To(Equal(before))
		Expect(session.Put(ctx, body(6, 100))).To(Succeed(), "the session goes on after a refusal")
	})

	It("is deleted only without resources, and leaves nothing", func(ctx SpecContext) {
		store, key := small(live), newKey()
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 30000, "a", "b"))).To(Succeed())
		before := head(ctx, key).ResourceVersion
		Expect(session.Delete(ctx)).
			To(as[*state.ResourcesRemainError](HaveField("Addresses", []string{"node.a", "node.b"})))
		Expect(head(ctx, key).ResourceVersion).To(Equal(before))
		Expect(session.Put(ctx, body(2, 30000))).To(Succeed())
		Expect(len(secretsOf(ctx, key, ""))).To(BeNumerically(">", 6))
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
		Expect(session.Delete(ctx)).To(Succeed())
		_, err := session.Snapshot(ctx)
		Expect(err).To(MatchError(state.ErrClosed))
	})

	It("is deleted with what a put that failed has left", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		session := acquire(ctx, small(api.client()), key, run("r1"))
		api.set(func(f *faults) { f.dieAt = len(f.writes) + 4 })
		Expect(session.Put(ctx, body(1, 30000))).To(MatchError(errDied))
		Expect(len(secretsOf(ctx, key, ""))).To(BeNumerically(">", 1))
		api.set(func(f *faults) { f.dieAt = 0 })
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})

	It("is deleted in two writes when it is small", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		session := acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1"))
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(api.writes).To(Equal([]string{"create " + key.Name, "update " + key.Name, "delete " + key.Name}))
	})
})

var _ = Describe("A big state", func() {
	It("of 3 MiB is cut into parts and shrinks back to one Secret", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		big := body(1, 3<<20, "this")
		Expect(session.Put(ctx, big)).To(Succeed())
		Expect(secretsOf(ctx, key, state.RolePart)).To(Equal([]string{key.Name + "-part-1", key.Name + "-part-2",
			key.Name + "-part-3"}))
		Expect(secretsOf(ctx, key, state.RoleVersion)).To(HaveLen(4))
		Expect(stockRead(ctx, key)).To(Equal(big))
		seen, err := store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Raw).To(Equal(big))

		tiny := body(2, 100, "this")
		Expect(session.Put(ctx, tiny)).To(Succeed())
		Expect(secretsOf(ctx, key, state.RolePart)).To(BeEmpty())
		Expect(stockRead(ctx, key)).To(Equal(tiny))
		Expect(store.Version(ctx, key, 1)).To(Equal(big))

		for serial := 3; serial <= 5; serial++ {
			Expect(session.Put(ctx, body(serial, 100))).To(Succeed())
		}
		Expect(secretsOf(ctx, key, "")).To(Equal([]string{key.Name}), "the copy goes with its version")
		Expect(session.Release(ctx, nil)).To(Succeed())
	})

	It("of more than ten parts is read in order", func(ctx SpecContext) {
		store, key := small(live), newKey()
		session := acquire(ctx, store, key, run("r1"))
		big := body(1, 100000)
		Expect(session.Put(ctx, big)).To(Succeed())
		Expect(len(secretsOf(ctx, key, state.RolePart))).To(BeNumerically(">", 10))
		Expect(stockRead(ctx, key)).To(Equal(big))
		Expect(store.Get(ctx, key)).To(HaveField("Raw", big))
	})

	It("is read from its parts when its copy is gone, and from its copy when parts are", func(ctx SpecContext) {
		store, key := small(live), newKey()
		session := acquire(ctx, store, key, run("r1"))
		big := body(1, 20000)
		Expect(session.Put(ctx, big)).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		remove(ctx, key.Namespace, secretsOf(ctx, key, state.RolePart)[0])
		Expect(store.Get(ctx, key)).To(HaveField("Raw", big))
		session = acquire(ctx, store, key, run("r2"))
		bigger := body(2, 30000)
		Expect(session.Put(ctx, bigger)).To(Succeed())
		Expect(stockRead(ctx, key)).To(Equal(bigger), "the next write repairs the parts")
		versions := secretsOf(ctx, key, state.RoleVersion)
		remove(ctx, key.Namespace, versions...)
		Expect(store.Get(ctx, key)).To(HaveField("Raw", bigger))
		remove(ctx, key.Namespace, secretsOf(ctx, key, state.RolePart)[0])
		_, err := store.Get(ctx, key)
		Expect(err).To(MatchError(ContainSubstring("cannot read")))
	})
})

var _ = Describe("Reading", func() {
	It("lists heads without their states", func(ctx SpecContext) {
		store := small(live)
		for i, size := range []int{0, 100, 20000} {
			key := newKey()
			session, err := store.Acquire(ctx, key,
				state.AcquireOptions{Lock: run("r1"), Labels: map[string]string{state.LabelMachineUID: fmt.Sprint(i)}})
			Expect(err).NotTo(HaveOccurred())
			if size > 0 {
				Expect(session.Put(ctx, body(i, size, "a"))).To(Succeed())
				Expect(session.Release(ctx, state.MetaPatch{"hash": ptr.To("h")})).To(Succeed())
			}
		}
		heads, err := store.List(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(heads).To(HaveLen(3))
		for i, h := range heads {
			Expect(h.Labels).To(HaveKeyWithValue(state.LabelMachineUID, fmt.Sprint(i)))
			Expect(h.Problem).NotTo(HaveOccurred())
			Expect(h.Created).NotTo(BeZero())
			Expect(h.Stored).To(Equal(i > 0))
			Expect(h.Serial).To(Equal(uint64(i)))
			Expect(h.Lock != nil).To(Equal(i == 0))
			Expect(h.Managed).To(Equal(min(i, 1)))
			Expect(h.Size > 0).To(Equal(i > 0))
			Expect(h.Written.IsZero()).To(Equal(i == 0))
		}
		Expect(heads[2].Meta).To(Equal(map[string]string{"hash": "h"}))
	})

	It("reports a lock that cannot be read and takes it for no free one", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		acquire(ctx, store, key, run("r1"))
		secret := head(ctx, key)
		secret.Annotations["machine-iac.io/lock"] = "{"
		Expect(live.Update(ctx, secret)).To(Succeed())
		heads, err := store.List(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(heads[0].Problem).To(MatchError(ContainSubstring("machine-iac.io/lock")))
		_, err = store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2")})
		Expect(err).To(MatchError(ContainSubstring("machine-iac.io/lock")))
	})

	It("refuses what a newer operator wrote, says so, and changes nothing", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 100))).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		touch(ctx, key, func(s *corev1.Secret) {
			s.Annotations["machine-iac.io/record"] = `{"format":3,"current":"laid out anew"}`
		})
		before := head(ctx, key).ResourceVersion
		newer := And(as[*state.FormatError](HaveField("Format", 3)),
			MatchError(ContainSubstring("upgrade the operator")))
		_, err := store.Get(ctx, key)
		Expect(err).To(newer)
		_, err = store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2")})
		Expect(err).To(newer)
		_, err = store.Version(ctx, key, 1)
		Expect(err).To(newer)
		_, err = store.Versions(ctx, key)
		Expect(err).To(newer)
		heads, err := store.List(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(heads[0].Problem).To(newer)
		Expect(head(ctx, key).ResourceVersion).To(Equal(before))
	})

	It("never sees mixed versions while a big state is written", func(ctx SpecContext) {
		store, key := small(live), newKey()
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 20000))).To(Succeed())
		writing, done := context.WithCancel(ctx)
		go func() {
			defer GinkgoRecover()
			defer done()
			for serial := 2; serial <= 12; serial++ {
				Expect(session.Put(ctx, body(serial, []int{20000, 100, 40000}[serial%3]))).To(Succeed())
			}
		}()
		reads, last := 0, uint64(0)
		for ; writing.Err() == nil; reads++ {
			seen, err := store.Get(ctx, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(seen.Serial).To(BeNumerically(">=", last))
			last = seen.Serial
		}
		Expect(reads).To(BeNumerically(">", 3))
	})

	It("begins anew when writers take the version away that it reads", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		session := acquire(ctx, small(live), key, run("r1"))
		Expect(session.Put(ctx, body(1, 20000))).To(Succeed())
		last := body(5, 20000)
		api.set(func(f *faults) {
			f.beforeCopy = func() {
				for serial := 2; serial < 5; serial++ {
					Expect(session.Put(ctx, body(serial, 20000))).To(Succeed())
				}
				Expect(session.Put(ctx, last)).To(Succeed())
			}
		})
		Expect(small(api.client()).Get(ctx, key)).To(HaveField("Raw", last))
	})

	It("says what is damaged, and gives the version before it", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		good := body(1, 100)
		Expect(session.Put(ctx, good)).To(Succeed())
		Expect(session.Put(ctx, body(2, 100))).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		secret := head(ctx, key)
		secret.Data["tfstate"] = secret.Data["tfstate"][:50]
		Expect(live.Update(ctx, secret)).To(Succeed())
		_, err := store.Get(ctx, key)
		Expect(err).To(MatchError(ContainSubstring("cannot read")))
		_, err = store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2")})
		Expect(err).To(MatchError(ContainSubstring("cannot read")))
		Expect(store.Version(ctx, key, 1)).To(Equal(good))
		Expect(head(ctx, key).Annotations).NotTo(HaveKey("machine-iac.io/lock"))
	})
})

var _ = Describe("A state that Terraform's own backend wrote", func() {
	stock := func(ctx context.Context, key state.Key, parts [][]byte) {
		GinkgoHelper()
		for i, part := range parts {
			name := key.Name
			if i > 0 {
				name = fmt.Sprintf("%s-part-%d", key.Name, i)
			}
			secret := &corev1.Secret{}
			err := live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, secret)
			if apierrors.IsNotFound(err) {
				secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name,
					Labels: map[string]string{
						"tfstate": "true", "tfstateSecretSuffix": key.Suffix(), "tfstateWorkspace": "default",
						"app.kubernetes.io/managed-by": "terraform",
					}, Annotations: map[string]string{"encoding": "gzip"}}}
				Expect(live.Create(ctx, secret)).To(Succeed())
			}
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data["tfstate"] = part
			Expect(live.Update(ctx, secret)).To(Succeed())
		}
	}
	cut := func(packed []byte, size int) (parts [][]byte) {
		for len(packed) > size {
			parts, packed = append(parts, packed[:size]), packed[size:]
		}
		return append(parts, packed)
	}

	It("is taken over, with its parts", func(ctx SpecContext) {
		store, key := small(live), newKey()
		foreign := body(3, 20000, "this")
		stock(ctx, key, cut(gzipped(foreign), 8000))
		Expect(store.Get(ctx, key)).To(HaveField("Raw", foreign))
		session := acquire(ctx, store, key, run("r1"))
		Expect(stockRead(ctx, key)).To(Equal(foreign))
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(store.Get(ctx, key)).To(HaveField("Raw", foreign))
		session = acquire(ctx, store, key, run("r2"))
		next := body(4, 100)
		Expect(session.Put(ctx, next)).To(Succeed())
		Expect(stockRead(ctx, key)).To(Equal(next))
		Expect(store.Version(ctx, key, 3)).To(Equal(foreign))
		Expect(secretsOf(ctx, key, state.RolePart)).To(BeEmpty())
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})

	It("is deleted with its parts", func(ctx SpecContext) {
		store, key := small(live), newKey()
		stock(ctx, key, cut(gzipped(body(3, 20000)), 8000))
		Expect(acquire(ctx, store, key, run("r1")).Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})

	It("replaces a state of this store, small or big", func(ctx SpecContext) {
		for _, size := range []int{100, 20000} {
			store, key := small(live), newKey()
			session := acquire(ctx, store, key, run("r1"))
			Expect(session.Put(ctx, body(1, size))).To(Succeed())
			Expect(session.Release(ctx, nil)).To(Succeed())
			foreign := body(2, 200)
			stock(ctx, key, [][]byte{gzipped(foreign)})
			Expect(store.Get(ctx, key)).To(HaveField("Raw", foreign))
			session = acquire(ctx, store, key, run("r2"))
			Expect(stockRead(ctx, key)).To(Equal(foreign), "parts left over are tidied")
			Expect(session.Put(ctx, body(3, 100))).To(Succeed())
			Expect(store.Version(ctx, key, 2)).To(Equal(foreign))
		}
	})

	It("fences off a session when it is written under it", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 100))).To(Succeed())
		foreign := body(7, 100)
		stock(ctx, key, [][]byte{gzipped(foreign)})
		Expect(session.Put(ctx, body(2, 100))).To(MatchError(state.ErrFenced))
		Expect(store.Get(ctx, key)).To(HaveField("Raw", foreign))
	})
})

var _ = Describe("An API server that is away", func() {
	It("is waited for", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		session := acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1"))
		api.set(func(f *faults) { f.away = true })
		back := time.AfterFunc(time.Second, func() { api.set(func(f *faults) { f.away = false }) })
		defer back.Stop()
		Expect(session.Put(ctx, body(1, 100))).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
	})

	It("is waited for no longer than the context says, and the session goes on", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := state.New(api.client(), state.Options{})
		session := acquire(ctx, store, key, run("r1"))
		api.set(func(f *faults) { f.away = true })
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		Expect(session.Put(short, body(1, 100))).To(as[*state.UnavailableError](Not(BeNil())))
		api.set(func(f *faults) { f.away = false })
		next := body(2, 100)
		Expect(session.Put(ctx, next)).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		Expect(store.Get(ctx, key)).To(HaveField("Raw", next))
	})
})
