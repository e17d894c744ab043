package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/module/store"
)

// keysOf returns keys, of which the first signs.
func keysOf(seeds ...string) *store.Keys {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	for i, seed := range seeds {
		Expect(os.WriteFile(filepath.Join(folder, string(rune('a'+i))), []byte(strings.Repeat(seed, 32)), 0o600)).To(Succeed())
	}
	keys, err := store.ReadKeys(folder)
	Expect(err).NotTo(HaveOccurred())
	return keys
}

// with restarts with keys, knowing the modules with some digests.
func (s *shelf) with(keys *store.Keys, known ...string) {
	GinkgoHelper()
	s.keys, s.known = keys, only(known...)
	s.restart(oneSecret)
}

var _ = Describe("A module that is stored where others write", func() {
	It("is signed, and read by whoever has the key", func(ctx SpecContext) {
		s, kept := newShelf(ctx, oneSecret), variant([]byte("1"))
		s.with(keysOf("a"))
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		Expect(s.secrets(ctx, store.RoleHead)[0].Annotations).To(HaveKeyWithValue(store.AnnotationSignature, MatchRegexp("^hmac-sha256:[0-9a-f]{64}$")))
		s.with(keysOf("a"))
		Expect(s.Load(ctx, s.namespace, kept.Digest())).NotTo(BeNil())
		s.with(keysOf("b", "a")) // a key that is replaced
		Expect(s.Load(ctx, s.namespace, kept.Digest())).NotTo(BeNil())
	})

	DescribeTable("is not used when", func(ctx SpecContext, forge func(ctx SpecContext, s *shelf)) {
		s, kept := newShelf(ctx, oneSecret), variant([]byte("1"))
		s.with(keysOf("a"))
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		forge(ctx, s)
		s.with(keysOf("a"))
		_, err := s.Load(ctx, s.namespace, kept.Digest())
		Expect(store.IsUnproven(err)).To(BeTrue(), "%v", err)
		Expect(store.IsMissing(err)).To(BeFalse())
		Expect(err).To(MatchError(ContainSubstring("sign it with 'kubectl machine module sign'")))

		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed()) // by whoever has it
		s.with(keysOf("a"))
		Expect(s.Load(ctx, s.namespace, kept.Digest())).NotTo(BeNil())
	},
		Entry("nobody has signed it", func(ctx SpecContext, s *shelf) {
			s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) { delete(secret.Annotations, store.AnnotationSignature) })
		}),
		Entry("somebody has signed it with another key", func(ctx SpecContext, s *shelf) {
			other := newShelf(ctx, oneSecret)
			other.with(keysOf("b"))
			Expect(other.Keep(ctx, other.namespace, variant([]byte("1")))).To(Succeed())
			s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) {
				secret.Annotations = other.secrets(ctx, store.RoleHead)[0].Annotations
			})
		}),
		Entry("the signature is another module's", func(ctx SpecContext, s *shelf) {
			Expect(s.Keep(ctx, s.namespace, variant([]byte("2")))).To(Succeed())
			var signatures []string
			for _, head := range s.secrets(ctx, store.RoleHead) {
				signatures = append(signatures, head.Annotations[store.AnnotationSignature])
			}
			for i, head := range s.secrets(ctx, store.RoleHead) {
				s.replace(ctx, head, func(secret *corev1.Secret) { secret.Annotations[store.AnnotationSignature] = signatures[1-i] })
			}
		}),
		Entry("it is damaged as well", func(ctx SpecContext, s *shelf) {
			s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) {
				secret.Data["module.tar.gz"][7]++
				secret.Annotations[store.AnnotationSignature] = "hmac-sha256:00"
			})
		}),
	)

	It("is not used by a program without a key that wants somebody to vouch, unless it has the module", func(ctx SpecContext) {
		s, kept := newShelf(ctx, oneSecret), variant([]byte("1"))
		s.with(keysOf("a"))
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		_, err := store.New(plane.Client, store.Options{Vouched: true}).Load(ctx, s.namespace, kept.Digest())
		Expect(store.IsUnproven(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(And(ContainSubstring("the module in Secret"), ContainSubstring("--module-dir or --module-source"))))
		known := store.New(plane.Client, store.Options{Vouched: true, Known: only(kept.Digest())})
		Expect(known.Load(ctx, s.namespace, kept.Digest())).NotTo(BeNil())
		signed := store.New(plane.Client, store.Options{Vouched: true, Keys: keysOf("a")})
		Expect(signed.Load(ctx, s.namespace, kept.Digest())).NotTo(BeNil())
	})

	It("with its signature is not used with another content", func(ctx SpecContext) {
		s, kept, other := newShelf(ctx, oneSecret), variant([]byte("1")), newShelf(ctx, oneSecret)
		s.with(keysOf("a"))
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		Expect(other.Keep(ctx, other.namespace, variant([]byte("2")))).To(Succeed())
		s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) {
			from := other.secrets(ctx, store.RoleHead)[0]
			secret.Data = from.Data
			secret.Annotations["machine-iac.io/archive-sha256"] = from.Annotations["machine-iac.io/archive-sha256"]
		})
		s.with(keysOf("a"))
		_, err := s.Load(ctx, s.namespace, kept.Digest())
		var damaged *store.DamagedError
		Expect(errors.As(err, &damaged)).To(BeTrue(), "%v", err)
	})

	It("is signed anew where the program was given it, or an earlier key has signed it", func(ctx SpecContext) {
		s, before, earlier, stranger := newShelf(ctx, oneSecret), variant([]byte("1")), variant([]byte("2")), variant([]byte("3"))
		Expect(s.Keep(ctx, s.namespace, before)).To(Succeed())
		Expect(s.Keep(ctx, s.namespace, stranger)).To(Succeed())
		s.with(keysOf("a"))
		Expect(s.Keep(ctx, s.namespace, earlier)).To(Succeed())

		s.with(keysOf("b", "a"), before.Digest())
		Expect(s.Load(ctx, s.namespace, before.Digest())).NotTo(BeNil()) // known to be the same
		Expect(s.Tidy(ctx, s.namespace, func(string) bool { return true })).To(BeEmpty())
		s.with(keysOf("b"))
		Expect(s.Load(ctx, s.namespace, before.Digest())).NotTo(BeNil())
		Expect(s.Load(ctx, s.namespace, earlier.Digest())).NotTo(BeNil())
		_, err := s.Load(ctx, s.namespace, stranger.Digest())
		Expect(store.IsUnproven(err)).To(BeTrue(), "%v", err)
	})

	It("gets no signature for another Secret that says to hold it", func(ctx SpecContext) {
		s, given := newShelf(ctx, oneSecret), variant([]byte("1"))
		Expect(s.Keep(ctx, s.namespace, variant([]byte("2")))).To(Succeed())
		s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) {
			secret.Annotations[store.AnnotationReference] = given.Reference()
			secret.Immutable = ptr.To(false)
		})
		s.with(keysOf("a"), given.Digest())
		Expect(s.Tidy(ctx, s.namespace, func(string) bool { return true })).To(BeEmpty())
		Expect(s.secrets(ctx, store.RoleHead)[0].Annotations).NotTo(HaveKey(store.AnnotationSignature))
	})
})

func TestReadKeys(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, size int) string {
		full := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		return full
	}
	// A mounted Secret is links into a hidden folder.
	write("mounted/..data/key", 32)
	if err := os.Symlink("..data/key", filepath.Join(folder, "mounted/key")); err != nil {
		t.Fatal(err)
	}
	write("nested/folder/key", 32)
	if err := os.Mkdir(filepath.Join(folder, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ path, want string }{
		"a file":             {write("key", 32), ""},
		"a folder":           {filepath.Join(folder, "mounted"), ""},
		"a short key":        {write("short", 31), "short: it has 31 bytes, must be 32 to 65536; create a new one with 'openssl rand -out FILE 32'"},
		"a long file":        {write("long", 1<<17), "must be 32 to 65536"},
		"no file":            {filepath.Join(folder, "none"), "no such file"},
		"an empty folder":    {filepath.Join(folder, "empty"), "has 0 keys; keep 1 to 16 there"},
		"a folder of others": {filepath.Join(folder, "nested"), "folder is no file; keep nothing but keys in the folder"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.ReadKeys(tc.path)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
