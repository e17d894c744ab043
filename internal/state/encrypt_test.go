package state_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// confidential is a secret in every state and attachment.
const confidential = "correct-horse-battery-staple"

// keysOf returns keys made from seeds; the first one encrypts. It shares keys of equal seeds, because deriving one
// takes a while.
func keysOf(seeds ...string) *state.Keys {
	GinkgoHelper()
	name := strings.Join(seeds, "")
	if sharedKeys[name] == nil {
		folder := GinkgoT().TempDir()
		for i, seed := range seeds {
			Expect(os.WriteFile(filepath.Join(folder, string(rune('a'+i))), []byte(strings.Repeat(seed, 40)),
				0o600)).To(Succeed())
		}
		keys, err := state.ReadKeys(folder)
		Expect(err).NotTo(HaveOccurred())
		sharedKeys[name] = keys
	}
	return sharedKeys[name]
}

var sharedKeys = map[string]*state.Keys{}

// keyed returns a store with keys, and optionally small limits.
func keyed(c client.Client, keys *state.Keys, small bool) *state.Store {
	if small {
		return state.New(c, state.Options{Keys: keys, ChunkBytes: 8 << 10, InlineBytes: 4 << 10})
	}
	return state.New(c, state.Options{Keys: keys})
}

func confidentialBody(serial, size int) []byte {
	return bytes.Replace(body(serial, size, "a"), []byte(`"outputs":{`),
		fmt.Appendf(nil, `"outputs":{"password":{"type":"string","value":%q},`, confidential), 1)
}

// readable lists the Secrets' data that contains the secret, raw or unpacked. It joins the parts of a state.
func readable(ctx context.Context) []string {
	GinkgoHelper()
	list := &corev1.SecretList{}
	Expect(live.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	joined := map[string][]byte{}
	var found []string
	see := func(where string, content []byte) {
		if bytes.Contains(content, []byte(confidential)) {
			found = append(found, where)
		}
	}
	for _, secret := range list.Items {
		see(secret.Name, fmt.Append(nil, secret.ObjectMeta))
		for key, content := range secret.Data {
			see(secret.Name+"/"+key, content)
			joined[secret.Name+"/"+key] = content
		}
	}
	for where, content := range joined { // the first part begins like gzip
		if reader, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
			raw, _ := io.ReadAll(reader)
			see(where+" unpacked", raw)
		}
	}
	return found
}

// fill stores attachments and four versions, of which the head keeps three besides the current one. It returns the
// states by serial.
func fill(ctx context.Context, store *state.Store, key state.Key, size int) map[int][]byte {
	GinkgoHelper()
	session, err := store.Acquire(ctx, key,
		state.AcquireOptions{Lock: run("fill"),
			Attachments: state.Attachments{"inputs": gzipped([]byte(confidential))}})
	Expect(err).NotTo(HaveOccurred())
	states := map[int][]byte{}
	for serial := 1; serial <= 4; serial++ {
		states[serial] = confidentialBody(serial, size)
		Expect(session.Put(ctx, states[serial])).To(Succeed())
	}
	Expect(session.Attach(ctx, state.Attachments{"output": gzipped([]byte("the " + confidential))})).To(Succeed())
	Expect(session.Release(ctx, state.MetaPatch{"fingerprint": ptr.To("f")})).To(Succeed())
	return states
}

// expectKept checks that a store reads what fill stored.
func expectKept(ctx context.Context, store *state.Store, key state.Key, states map[int][]byte) {
	GinkgoHelper()
	seen, err := store.Get(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	Expect(seen.Raw).To(Equal(states[4]))
	Expect(seen.Serial).To(BeEquivalentTo(4))
	Expect(seen.Attachments).To(Equal(state.Attachments{"inputs": gzipped([]byte(confidential)),
		"output": gzipped([]byte("the " + confidential))}))
	Expect(seen.Meta).To(HaveKeyWithValue("fingerprint", "f"))
	for serial := 1; serial <= 4; serial++ {
		Expect(store.Version(ctx, key, uint64(serial))).To(Equal(states[serial]), "version %d", serial)
	}
	versions, err := store.Versions(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	Expect(versions).To(HaveLen(4))
	for _, version := range versions {
		Expect(version.Managed).To(Equal(1))
		Expect(version.Size).To(Equal(len(states[int(version.Serial)])))
		Expect(version.Written).NotTo(BeZero())
	}
}

// rewrite rewrites a state as a manager does.
func rewrite(ctx context.Context, store *state.Store, key state.Key) error {
	session, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("rewrite")})
	if err != nil {
		return err
	}
	if err := session.Rewrite(ctx); err != nil {
		return err
	}
	return session.Release(ctx, nil)
}

var _ = Describe("A store with a key", func() {
	for name, limits := range map[string]struct {
		small bool
		size  int
	}{"in the head": {false, 1 << 10}, "in parts and copies": {true, 20 << 10}} {
		Context(name, func() {
			small, size := limits.small, limits.size

			It("keeps nothing readable, and reads all of it", func(ctx SpecContext) {
				store, key := keyed(live, keysOf("k"), small), newKey()
				states := fill(ctx, store, key, size)
				Expect(readable(ctx)).To(BeEmpty())
				expectKept(ctx, store, key, states)
				expectKept(ctx, keyed(live, keysOf("x", "k"), small), key, states)
				Expect(store.Outdated(ctx, key)).To(BeFalse())
				Expect(head(ctx, key).Annotations[state.Prefix+"record"]).To(ContainSubstring(`"format":2`))

				raw, err := stockRead(ctx, key) // Terraform's own backend finds what OpenTofu writes
				Expect(err).NotTo(HaveOccurred())
				content, _, err := keysOf("k").Decrypt(raw)
				Expect(err).NotTo(HaveOccurred())
				Expect(content).To(Equal(states[4]))
			})

			It("is not read without its key, and nothing is changed", func(ctx SpecContext) {
				key := newKey()
				states := fill(ctx, keyed(live, keysOf("k"), small), key, size)
				before := head(ctx, key).ResourceVersion
				for fix, store := range map[string]*state.Store{
					"set --state-key-file":                    keyed(live, nil, small),
					"no key of --state-key-file (1) opens it": keyed(live, keysOf("x"), small),
				} {
					lost := as[*state.EncryptedError](HaveField("Key", key))
					_, err := store.Get(ctx, key)
					Expect(err).To(SatisfyAll(lost, MatchError(ContainSubstring(fix))))
					_, err = store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r")})
					Expect(err).To(lost)
					_, err = store.Version(ctx, key, 2)
					Expect(err).To(lost)
					Expect(store.Import(ctx, key, state.ImportOptions{
						Raw: confidentialBody(9, 10), Lock: run("i"),
						Check: func(context.Context, *state.Snapshot) error { return nil },
					})).To(lost)
					heads, err := store.List(ctx, namespace)
					Expect(err).NotTo(HaveOccurred())
					Expect(heads).
						To(ConsistOf(SatisfyAll(HaveField("Serial", BeEquivalentTo(4)), HaveField("Problem", BeNil()))))
				}
				Expect(head(ctx, key).ResourceVersion).To(Equal(before))
				expectKept(ctx, keyed(live, keysOf("k"), small), key, states)
			})

			It("reads what is not encrypted, and encrypts it with the next write or all of it at once",
				func(ctx SpecContext) {
					key, store := newKey(), keyed(live, keysOf("k"), small)
					states := fill(ctx, keyed(live, nil, small), key, size)
					Expect(readable(ctx)).NotTo(BeEmpty())
					expectKept(ctx, store, key, states)
					Expect(store.Outdated(ctx, key)).To(BeTrue())
					Expect(rewrite(ctx, store, key)).To(Succeed())
					Expect(readable(ctx)).To(BeEmpty())
					Expect(store.Outdated(ctx, key)).To(BeFalse())
					expectKept(ctx, store, key, states)
					before := head(ctx, key)
					Expect(rewrite(ctx, store, key)).To(Succeed())
					Expect(head(ctx, key).Data).To(Equal(before.Data))

					next := newKey()
					fill(ctx, keyed(live, nil, small), next, size)
					session := acquire(ctx, store, next, run("r"))
					Expect(session.Put(ctx, confidentialBody(5, size))).To(Succeed())
					Expect(session.Release(ctx, nil)).To(Succeed())
					seen, err := store.Get(ctx, next)
					Expect(err).NotTo(HaveOccurred())
					Expect(seen.Serial).To(BeEquivalentTo(5))
					_, err = keyed(live, nil, small).Get(ctx, next)
					Expect(err).To(as[*state.EncryptedError](HaveField("Key", next)))
				})

			It("replaces its key, and is switched off", func(ctx SpecContext) {
				key := newKey()
				states := fill(ctx, keyed(live, keysOf("k"), small), key, size)
				both := keyed(live, keysOf("x", "k"), small)
				Expect(both.Outdated(ctx, key)).To(BeTrue())
				Expect(rewrite(ctx, both, key)).To(Succeed())
				expectKept(ctx, keyed(live, keysOf("x"), small), key, states)
				Expect(readable(ctx)).To(BeEmpty())

				off := keyed(live, keysOf("x", "k").DecryptOnly(), small)
				Expect(off.Outdated(ctx, key)).To(BeTrue())
				Expect(rewrite(ctx, off, key)).To(Succeed())
				expectKept(ctx, keyed(live, nil, small), key, states)
				Expect(head(ctx, key).Annotations[state.Prefix+"record"]).To(ContainSubstring(`"format":1`))
				session := acquire(ctx, keyed(live, nil, small), key, run("end"))
				Expect(session.Forget(ctx)).To(Succeed())
				Expect(secretsOf(ctx, key, "")).To(BeEmpty())
			})

			It("loses nothing when the process dies while a state is rewritten", func(ctx SpecContext) {
				step := 1
				if small {
					step = 5 // of some sixty writes
				}
				for died := 1; ; died += step {
					key, api := newKey(), &faults{}
					states := fill(ctx, keyed(live, nil, small), key, size)
					api.dieAt = died
					err := rewrite(ctx, keyed(api.client(), keysOf("k"), small), key)
					store := keyed(live, keysOf("k"), small)
					expectKept(ctx, store, key, states)
					session, taken := store.Acquire(ctx, key,
						state.AcquireOptions{Lock: run("next"), Break: ptr.To(run("rewrite"))})
					Expect(taken).NotTo(HaveOccurred())
					Expect(session.Rewrite(ctx)).To(Succeed())
					Expect(session.Release(ctx, nil)).To(Succeed())
					expectKept(ctx, store, key, states)
					Expect(readable(ctx)).To(BeEmpty())
					Expect(secretsOf(ctx, key, state.RoleVersion)).To(HaveLen(copiesOf(ctx, key)))
					if err == nil {
						return
					}
				}
			})
		})
	}

	It("writes nothing where nothing changes", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		store := keyed(api.client(), keysOf("k"), false)
		options := state.AcquireOptions{Lock: run("r"),
			Attachments: state.Attachments{"inputs": gzipped([]byte(confidential))}}
		_, err := store.Acquire(ctx, key, options)
		Expect(err).NotTo(HaveOccurred())
		Expect(head(ctx, key).Annotations[state.Prefix+
			"record"]).To(ContainSubstring(`"format":2`)) // before there is a state
		_, err = store.Acquire(ctx, key, options)
		Expect(err).NotTo(HaveOccurred())
		Expect(api.count()).To(Equal(1))
		_, err = keyed(live, nil, false).Get(ctx, key)
		Expect(err).To(as[*state.EncryptedError](HaveField("Key", key)))
	})

	It("has room for as much beside a state as without", func(ctx SpecContext) {
		store, key := keyed(live, keysOf("k"), false), newKey()
		noise := make([]byte, state.MaxAttachmentBytes/3)
		_, _ = rand.Read(noise)
		attached := state.Attachments{"a": noise, "b": noise, "c": noise}
		session, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r"), Attachments: attached})
		Expect(err).NotTo(HaveOccurred())
		Expect(session.Put(ctx, body(1, 1<<20, "a"))).To(Succeed())
		Expect(session.Put(ctx, body(2, 2<<20, "a"))).To(Succeed())
		Expect(session.Attach(ctx, state.Attachments{"d": noise})).To(MatchError(ContainSubstring("there is room for")))
		Expect(session.Release(ctx, nil)).To(Succeed())
		seen, err := store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Attachments).To(Equal(attached))
	})

	It("imports and restores states as it stores them", func(ctx SpecContext) {
		store, key := keyed(live, keysOf("k"), false), newKey()
		Expect(store.Import(ctx, key, state.ImportOptions{
			Raw: confidentialBody(3, 10), Attachments: state.Attachments{"inputs": gzipped([]byte(confidential))},
			Lock:  run("i"),
			Check: func(context.Context, *state.Snapshot) error { return nil },
		})).To(Succeed())
		session := acquire(ctx, store, key, run("r"))
		Expect(session.Put(ctx, confidentialBody(4, 10))).To(Succeed())
		earlier, err := store.Version(ctx, key, 3)
		Expect(err).NotTo(HaveOccurred())
		Expect(session.Restore(ctx, earlier)).To(BeEquivalentTo(5))
		Expect(readable(ctx)).To(BeEmpty())
		Expect(store.Outdated(ctx, key)).To(BeFalse())
	})

	It("keeps an orphaned state encrypted, and encrypts one that was not", func(ctx SpecContext) {
		plain, store, key := keyed(live, nil, true), keyed(live, keysOf("k"), true), newKey()
		options := state.OrphanOptions{
			Reason: "r", Machine: "m", MachineUID: "u",
			Attachments: state.Attachments{"inputs": gzipped([]byte(confidential))},
			Since:       time.Unix(1700000000, 0),
		}
		raw := confidentialBody(3, 20<<10)
		before, err := plain.SaveOrphan(ctx, key, raw, options)
		Expect(err).NotTo(HaveOccurred())
		Expect(store.RewriteOrphan(ctx, *before)).To(BeTrue())
		Expect(readable(ctx)).To(BeEmpty())
		kept, err := store.Orphans(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(HaveLen(1))
		Expect(kept[0].Since.Equal(options.Since)).To(BeTrue())
		Expect(kept[0].Serial).To(BeEquivalentTo(3))
		Expect(store.RewriteOrphan(ctx, kept[0])).To(BeFalse())
		again, err := store.SaveOrphan(ctx, key, raw, options)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Name).To(Equal(kept[0].Name))

		name := types.NamespacedName{Namespace: namespace, Name: kept[0].Name}
		content, attached, err := store.ReadOrphan(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		Expect(content).To(Equal(raw))
		Expect(attached).To(Equal(options.Attachments))
		_, _, err = plain.ReadOrphan(ctx, name)
		Expect(err).To(as[*state.EncryptedError](HaveField("Key.Name", kept[0].Name)))
		Expect(store.DeleteOrphan(ctx, name)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})

	It("keeps an orphaned state whole that was cut off before", func(ctx SpecContext) {
		raw := confidentialBody(3, 20<<10)
		for died := 2; died <= 4; died++ {
			api, key := &faults{dieAt: died}, newKey()
			_, err := keyed(api.client(), keysOf("k"), true).SaveOrphan(ctx, key, raw, state.OrphanOptions{})
			Expect(err).To(MatchError(errDied))
			store := keyed(live, keysOf("k"), true)
			kept, err := store.SaveOrphan(ctx, key, raw, state.OrphanOptions{})
			Expect(err).NotTo(HaveOccurred())
			content, _, err := store.ReadOrphan(ctx, types.NamespacedName{Namespace: namespace, Name: kept.Name})
			Expect(err).NotTo(HaveOccurred())
			Expect(content).To(Equal(raw))
		}
	})
})

// copiesOf returns how many Secrets the copies of a state's versions should have.
func copiesOf(ctx context.Context, key state.Key) int {
	GinkgoHelper()
	known, err := state.DecodeIndex(head(ctx, key).Annotations)
	Expect(err).NotTo(HaveOccurred())
	count := 0
	for _, version := range append(known.Versions, *known.Current) {
		if version.Blob != nil {
			count += version.Blob.Chunks
		}
	}
	return count
}
