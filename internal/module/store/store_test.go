package store_test

import (
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/module/store"
)

const oneSecret = 1 << 19

var _ = Describe("A stored module", func() {
	It("is there once, and the same after a restart", func(ctx SpecContext) {
		s, kept := newShelf(ctx, oneSecret), variant([]byte("1"))
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		s.restart(oneSecret)
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		s.restart(oneSecret)
		loaded, err := s.Load(ctx, s.namespace, kept.Digest())
		Expect(err).NotTo(HaveOccurred())
		Expect(loaded.Reference()).To(Equal(kept.Reference()))
		Expect(loaded.Spec()).To(Equal(kept.Spec()))

		heads := s.secrets(ctx, store.RoleHead)
		Expect(heads).To(HaveLen(1))
		Expect(heads[0].Type).To(Equal(store.SecretType))
		Expect(heads[0].Immutable).To(HaveValue(BeTrue()))
		Expect(heads[0].Annotations).To(HaveKeyWithValue(store.AnnotationReference, kept.Reference()))
		Expect(heads[0].Labels).To(HaveKeyWithValue(store.LabelName, "kubemark"))
		Expect(s.secrets(ctx, store.RolePart)).To(BeEmpty())
	})

	It("costs nothing once it is known", func(ctx SpecContext) {
		s, kept := newShelf(ctx, oneSecret), variant([]byte("1"))
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		before := s.calls.Load()
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		Expect(s.Load(ctx, s.namespace, kept.Digest())).To(BeIdenticalTo(kept))
		Expect(s.calls.Load()).To(Equal(before))
	})

	It("may be larger than a Secret", func(ctx SpecContext) {
		s, kept := newShelf(ctx, 16<<10), variant(noise(100<<10))
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		Expect(len(s.secrets(ctx, store.RolePart))).To(BeNumerically(">", 5))
		s.restart(oneSecret) // whatever the limit is now
		loaded, err := s.Load(ctx, s.namespace, kept.Digest())
		Expect(err).NotTo(HaveOccurred())
		Expect(loaded.Digest()).To(Equal(kept.Digest()))
	})

	It("is not there before all of it is", func(ctx SpecContext) {
		s, kept := newShelf(ctx, 16<<10), variant(noise(100<<10))
		s.failing.Store(true)
		Expect(s.Keep(ctx, s.namespace, kept)).To(MatchError(ContainSubstring(kept.Reference())))
		_, err := s.Load(ctx, s.namespace, kept.Digest())
		Expect(err).To(MatchError(store.ErrNotFound))
		Expect(store.IsMissing(err)).To(BeTrue())

		s.failing.Store(false)
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		s.restart(oneSecret)
		Expect(s.Load(ctx, s.namespace, kept.Digest())).NotTo(BeNil())
	})

	DescribeTable("is reported when it was tampered with, and written anew by who has it", func(ctx SpecContext, harm func(context SpecContext, s *shelf)) {
		s, kept := newShelf(ctx, 16<<10), variant(noise(40<<10))
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		harm(ctx, s)
		s.restart(16 << 10)
		_, err := s.Load(ctx, s.namespace, kept.Digest())
		var damaged *store.DamagedError
		Expect(errors.As(err, &damaged)).To(BeTrue(), "%v", err)
		Expect(store.IsMissing(err)).To(BeTrue())
		Expect(err).To(MatchError(ContainSubstring(s.namespace + "/machine-iac-module-" + kept.Digest())))

		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		s.restart(16 << 10)
		Expect(s.Load(ctx, s.namespace, kept.Digest())).NotTo(BeNil())
	},
		Entry("by a part that is gone", func(ctx SpecContext, s *shelf) {
			Expect(plane.Client.Delete(ctx, &s.secrets(ctx, store.RolePart)[0])).To(Succeed())
		}),
		Entry("by other bytes in a part", func(ctx SpecContext, s *shelf) {
			s.replace(ctx, s.secrets(ctx, store.RolePart)[0], func(secret *corev1.Secret) { secret.Data["module.tar.gz"][7]++ })
		}),
		Entry("by a head that is another module's", func(ctx SpecContext, s *shelf) {
			other := newShelf(ctx, oneSecret)
			Expect(other.Keep(ctx, other.namespace, variant([]byte("other")))).To(Succeed())
			s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) {
				from := other.secrets(ctx, store.RoleHead)[0]
				secret.Data, secret.Annotations = from.Data, from.Annotations
			})
		}),
		Entry("by more parts than a module has", func(ctx SpecContext, s *shelf) {
			parts := s.secrets(ctx, store.RolePart)
			part := parts[0]
			for i := len(parts) + 1; i < 12; i++ {
				more := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: part.Namespace, Name: fmt.Sprintf("%s%d", part.Name[:len(part.Name)-1], i)}}
				more.Data = map[string][]byte{"module.tar.gz": make([]byte, 1<<20)}
				Expect(plane.Client.Create(ctx, more)).To(Succeed())
			}
			s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) { secret.Annotations["machine-iac.io/parts"] = "12" })
		}),
		Entry("by a number of parts that is none", func(ctx SpecContext, s *shelf) {
			s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) { secret.Annotations["machine-iac.io/parts"] = "900000000" })
		}),
		Entry("by a head that lists no parts", func(ctx SpecContext, s *shelf) {
			s.replace(ctx, s.secrets(ctx, store.RoleHead)[0], func(secret *corev1.Secret) { secret.Annotations = nil })
		}),
	)

	It("is read anew where more are needed than are kept in memory", func(ctx SpecContext) {
		s := newShelf(ctx, oneSecret)
		var digests []string
		for i := range 70 {
			m := variant([]byte(fmt.Sprint(i)))
			Expect(s.Keep(ctx, s.namespace, m)).To(Succeed())
			digests = append(digests, m.Digest())
		}
		s.calls.Store(0)
		for _, digest := range digests {
			Expect(s.Load(ctx, s.namespace, digest)).NotTo(BeNil())
		}
		Expect(s.calls.Load()).To(BeNumerically(">=", 6))
		s.calls.Store(0)
		Expect(s.Load(ctx, s.namespace, digests[69])).NotTo(BeNil())
		Expect(s.calls.Load()).To(BeZero(), "the last one is kept")
	})

	It("is not lost when the API server cannot be asked", func(ctx SpecContext) {
		s := newShelf(ctx, oneSecret)
		_, err := s.Load(ctx, "no/namespace", variant(nil).Digest())
		Expect(err).To(HaveOccurred())
		Expect(store.IsMissing(err)).To(BeFalse())
	})
})

// replace puts another Secret in the place of one, which is immutable.
func (s *shelf) replace(ctx SpecContext, secret corev1.Secret, change func(*corev1.Secret)) {
	GinkgoHelper()
	Expect(plane.Client.Delete(ctx, secret.DeepCopy())).To(Succeed())
	secret.ObjectMeta = metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, Labels: secret.Labels, Annotations: secret.Annotations}
	secret.Immutable = ptr.To(false)
	change(&secret)
	Expect(plane.Client.Create(ctx, &secret)).To(Succeed())
}
