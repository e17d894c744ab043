package pulumikeys_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// keysWith returns the keys of a namespace.
func keysWith(live client.Client, namespace string, now clock.PassiveClock) *pulumikeys.Keys {
	GinkgoHelper()
	keys, err := pulumikeys.New(live, pulumikeys.Options{Namespace: namespace, Clock: now})
	Expect(err).NotTo(HaveOccurred())
	keys.Derive(shelf.next, shelf.read)
	return keys
}

// readyMade shares keys between tests, because creating and deriving one is slow.
type readyMade struct {
	keys []*pulumi.Key

	mu    sync.Mutex
	given int
	// reads counts derivations.
	reads int
}

var shelf readyMade

// next returns another key each time, up to the maximum that a spec needs.
func (r *readyMade) next(context.Context) (*pulumi.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given++
	return r.keys[r.given%len(r.keys)], nil
}

func (r *readyMade) read(ctx context.Context, passphrase, salt string) (*pulumi.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	at := slices.IndexFunc(r.keys, func(k *pulumi.Key) bool { return k.Salt() == salt && k.Passphrase() == passphrase })
	if at < 0 {
		return pulumi.ReadKey(ctx, passphrase, salt)
	}
	return r.keys[at], nil
}

func secretIn(ctx context.Context, namespace string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(plane.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: pulumikeys.SecretName}, secret)).
		To(Succeed())
	return secret
}

var _ = Describe("The keys of a cluster", func() {
	var namespace string
	var now *clocktesting.FakePassiveClock
	var keys *pulumikeys.Keys

	BeforeEach(func(ctx SpecContext) {
		namespace = suite.Namespace(ctx, plane)
		now = clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		keys = keysWith(plane.Client, namespace, now)
	})

	It("begin with one, which every manager finds", func(ctx SpecContext) {
		Expect(keys.List(ctx)).To(BeEmpty())
		key, err := keys.Current(ctx)
		Expect(err).NotTo(HaveOccurred())
		reads := shelf.reads
		manager := keysWith(plane.Client, namespace, now)
		for range 2 {
			Expect(manager.Current(ctx)).
				To(And(HaveField("Salt()", key.Salt()), HaveField("Passphrase()", key.Passphrase())))
			Expect(keys.Current(ctx)).To(HaveField("Salt()", key.Salt()))
		}
		Expect(shelf.reads-reads).To(Equal(1), "deriving it again would cost every run half a second")
		Expect(keys.List(ctx)).
			To(
				HaveExactElements(And(HaveField("Current", true), HaveField("Salt", key.Salt()),
					HaveField("Created", now.Now()), HaveField("Replaced", BeZero()))))
		Expect(secretIn(ctx, namespace).Type).To(Equal(pulumikeys.SecretType))
	})

	It("end with one where managers race for the first", func(ctx SpecContext) {
		const managers = 3
		// All have looked before any of them writes.
		var looked sync.WaitGroup
		looked.Add(managers)
		live, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
		Expect(err).NotTo(HaveOccurred())
		racing := interceptor.NewClient(live, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object,
				options ...client.CreateOption) error {
				looked.Done()
				looked.Wait()
				return c.Create(ctx, object, options...)
			},
		})
		salts := make(chan string, managers)
		for range managers {
			go func() {
				defer GinkgoRecover()
				key, err := keysWith(racing, namespace, now).Current(ctx)
				Expect(err).NotTo(HaveOccurred())
				salts <- key.Salt()
			}()
		}
		first := <-salts
		for range managers - 1 {
			Expect(<-salts).To(Equal(first))
		}
		Expect(keys.List(ctx)).To(HaveLen(1))
	}, SpecTimeout(time.Minute))

	It("keep the older ones when one is replaced, also for a manager that has not seen it", func(ctx SpecContext) {
		old, err := keys.Current(ctx)
		Expect(err).NotTo(HaveOccurred())
		now.SetTime(now.Now().Add(time.Hour))
		person := keysWith(plane.Client, namespace, now)
		entry, err := person.Rotate(ctx)
		Expect(err).NotTo(HaveOccurred())
		fresh, err := keys.Current(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(fresh.Salt()).To(And(Equal(entry.Salt), Not(Equal(old.Salt()))))
		again, err := person.For(ctx, old.Salt())
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Passphrase()).To(Equal(old.Passphrase()))
		Expect(keys.List(ctx)).To(HaveExactElements(
			And(HaveField("ID", entry.ID), HaveField("Current", true)),
			And(HaveField("Salt", old.Salt()), HaveField("Current", false), HaveField("Replaced", now.Now())),
		))
		_, err = keys.For(ctx, "v1:x:y")
		Expect(err).To(MatchError(pulumikeys.ErrUnknown))
	})

	It("lose none where two people replace one at once", func(ctx SpecContext) {
		first, err := keys.Current(ctx)
		Expect(err).NotTo(HaveOccurred())
		live, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
		Expect(err).NotTo(HaveOccurred())
		var once sync.Once
		beaten := interceptor.NewClient(live, interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, object client.Object,
				options ...client.UpdateOption) error {
				once.Do(func() {
					defer GinkgoRecover()
					_, err := keys.Rotate(ctx)
					Expect(err).NotTo(HaveOccurred())
				})
				return c.Update(ctx, object, options...)
			},
		})
		last, err := keysWith(beaten, namespace, now).Rotate(ctx)
		Expect(err).NotTo(HaveOccurred())
		entries, err := keys.List(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(3))
		Expect(entries[0].ID).To(Equal(last.ID))
		Expect(entries).To(ContainElement(HaveField("Salt", first.Salt())))
	})

	It("lose those that nothing needs, once no run can still write with them", func(ctx SpecContext) {
		used, err := keys.Current(ctx)
		Expect(err).NotTo(HaveOccurred())
		spare, err := keys.Rotate(ctx)
		Expect(err).NotTo(HaveOccurred())
		current, err := keys.Rotate(ctx)
		Expect(err).NotTo(HaveOccurred())

		Expect(keys.Prune(ctx, []string{used.Salt()})).To(BeEmpty(), "a run that began before may still write")
		now.SetTime(now.Now().Add(pulumikeys.DefaultGrace))
		Expect(keys.Prune(ctx, []string{used.Salt()})).To(HaveExactElements(HaveField("ID", spare.ID)))
		Expect(keys.List(ctx)).To(HaveExactElements(HaveField("ID", current.ID), HaveField("Salt", used.Salt())))
		_, err = keys.For(ctx, spare.Salt)
		Expect(err).To(MatchError(pulumikeys.ErrUnknown))
		Expect(keys.Prune(ctx, nil)).To(HaveLen(1))
		Expect(keys.Prune(ctx, nil)).To(BeEmpty(), "the current one stays")
		Expect(secretIn(ctx, namespace).Data).To(HaveLen(4))
	})

	It("are not made anew where the Secret is damaged", func(ctx SpecContext) {
		_, err := keys.Current(ctx)
		Expect(err).NotTo(HaveOccurred())
		for name, damage := range map[string]func(map[string][]byte){
			"lacks its current key": func(data map[string][]byte) { data["current"] = []byte("other") },
			"lacks its passphrase or its salt": func(data map[string][]byte) {
				delete(data, string(data["current"])+".salt")
			},
		} {
			secret := secretIn(ctx, namespace)
			whole := secret.DeepCopy()
			damage(secret.Data)
			Expect(plane.Client.Update(ctx, secret)).To(Succeed())
			_, err := keys.Current(ctx)
			Expect(err).To(MatchError(And(ContainSubstring(name), ContainSubstring("backup"))))
			_, err = keys.Rotate(ctx)
			Expect(err).To(HaveOccurred())
			whole.ResourceVersion = secret.ResourceVersion
			Expect(plane.Client.Update(ctx, whole)).To(Succeed())
		}
	})

	It("reports a passphrase that is not the salt's, without showing it", func(ctx SpecContext) {
		_, err := keys.Current(ctx)
		Expect(err).NotTo(HaveOccurred())
		secret := secretIn(ctx, namespace)
		secret.Data[string(secret.Data["current"])+".passphrase"] = []byte("hunter22")
		Expect(plane.Client.Update(ctx, secret)).To(Succeed())
		_, err = keysWith(plane.Client, namespace, now).Current(ctx)
		Expect(err).
			To(
				MatchError(And(ContainSubstring("the passphrase does not match the salt"),
					Not(ContainSubstring("hunter22")))))
	})
})

var _ = Describe("What uses a key", func() {
	put := func(ctx SpecContext, namespace string, uid types.UID, bodies ...[]byte) {
		GinkgoHelper()
		session, err := state.New(plane.Client, state.Options{}).Acquire(ctx, state.KeyFor(namespace, uid),
			state.AcquireOptions{Lock: state.Lock{Owner: "m", Run: "r"}})
		Expect(err).NotTo(HaveOccurred())
		for _, body := range bodies {
			Expect(session.Put(ctx, body)).To(Succeed())
		}
		Expect(session.Release(ctx, nil)).To(Succeed())
	}
	checkpoint := func(serial uint64, salt string) []byte {
		GinkgoHelper()
		raw := fmt.Appendf(nil,
			`{"version":3,"checkpoint":{"latest":{"secrets_providers":{"type":"passphrase","state":{"salt":%q}}}}}`,
			salt)
		if salt == "" {
			raw = []byte(`{"version":3,"checkpoint":{"stack":"organization/acme/machine"}}`)
		}
		body, err := statefile.Checkpoint{Serial: serial, Lineage: "l", Raw: raw}.Encode()
		Expect(err).NotTo(HaveOccurred())
		return body
	}

	It("is counted, earlier versions too, and other engines' states are not", func(ctx SpecContext) {
		one, two := suite.Namespace(ctx, plane), suite.Namespace(ctx, plane)
		put(ctx, one, "u1", checkpoint(1, "v1:a:x"), checkpoint(2, "v1:a:x"), checkpoint(3, "v1:b:y"))
		put(ctx, one, "u2", checkpoint(1, "v1:b:y"))
		put(ctx, one, "u3", []byte(`{"version":4,"serial":1,"lineage":"l","outputs":{},"resources":[]}`))
		put(ctx, one, "u4", checkpoint(1, ""))
		put(ctx, one, "u5")
		put(ctx, two, "u6", checkpoint(1, "v1:b:y"))
		store := state.New(plane.Client, state.Options{})
		Expect(pulumikeys.Uses(ctx, store, one)).
			To(Equal(map[string]pulumikeys.Use{"v1:a:x": {Versions: 2}, "v1:b:y": {Checkpoints: 2}}))
		Expect(pulumikeys.Uses(ctx, store, "")).To(HaveKeyWithValue("v1:b:y", pulumikeys.Use{Checkpoints: 3}))
	})

	It("is not known where a state cannot be read", func(ctx SpecContext) {
		namespace := suite.Namespace(ctx, plane)
		put(ctx, namespace, "u1", checkpoint(1, "v1:a:x"))
		head := &corev1.Secret{}
		Expect(plane.Client.Get(ctx, types.NamespacedName(state.KeyFor(namespace, "u1")), head)).To(Succeed())
		head.Data["tfstate"] = []byte("no gzip")
		Expect(plane.Client.Update(ctx, head)).To(Succeed())
		_, err := pulumikeys.Uses(ctx, state.New(plane.Client, state.Options{}), namespace)
		Expect(err).To(MatchError(ContainSubstring("finding out which key")))
	})
})
