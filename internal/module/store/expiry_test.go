package store_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/module/store"
)

var _ = Describe("Tidying stored modules", func() {
	It("removes what nothing has needed for the grace period, and nothing sooner", func(ctx SpecContext) {
		s := newShelf(ctx, 16<<10)
		needed, unneeded := variant(noise(40<<10)), variant(noise(41<<10))
		Expect(s.Keep(ctx, s.namespace, needed)).To(Succeed())
		Expect(s.Keep(ctx, s.namespace, unneeded)).To(Succeed())
		tidy := func() []string {
			GinkgoHelper()
			removed, err := s.Tidy(ctx, s.namespace, only(needed.Digest()))
			Expect(err).NotTo(HaveOccurred())
			return removed
		}
		Expect(tidy()).To(BeEmpty())
		s.pass(59 * time.Minute)
		Expect(tidy()).To(BeEmpty())
		s.pass(2 * time.Minute)
		Expect(tidy()).To(ConsistOf(unneeded.Digest()))
		Expect(s.secrets(ctx, store.RoleHead)).To(HaveLen(1))
		for _, part := range s.secrets(ctx, store.RolePart) {
			Expect(part.Annotations).To(HaveKeyWithValue(store.AnnotationReference, needed.Reference()))
		}
		By("knowing it no more")
		_, err := s.Load(ctx, s.namespace, unneeded.Digest())
		Expect(err).To(MatchError(store.ErrNotFound))
	})

	It("begins the grace period anew when a module is used", func(ctx SpecContext) {
		s, kept := newShelf(ctx, oneSecret), variant(nil)
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		Expect(s.Tidy(ctx, s.namespace, none)).To(BeEmpty())
		s.pass(2 * time.Hour)
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		Expect(s.Tidy(ctx, s.namespace, none)).To(BeEmpty())
	})

	It("removes parts that a crash has left without a head", func(ctx SpecContext) {
		s := newShelf(ctx, 16<<10)
		s.failing.Store(true)
		Expect(s.Keep(ctx, s.namespace, variant(noise(40<<10)))).NotTo(Succeed())
		Expect(s.secrets(ctx, store.RolePart)).NotTo(BeEmpty())
		Expect(s.Tidy(ctx, s.namespace, none)).To(BeEmpty())
		s.pass(2 * time.Hour)
		Expect(s.Tidy(ctx, s.namespace, none)).To(HaveLen(1))
		Expect(s.secrets(ctx, store.RolePart)).To(BeEmpty())
	})

	It("stores again what is needed and was removed by another", func(ctx SpecContext) {
		s, kept := newShelf(ctx, oneSecret), variant(nil)
		Expect(s.Keep(ctx, s.namespace, kept)).To(Succeed())
		Expect(plane.Client.Delete(ctx, &s.secrets(ctx, store.RoleHead)[0])).To(Succeed())
		Expect(s.Tidy(ctx, s.namespace, only(kept.Digest()))).To(BeEmpty())
		s.restart(oneSecret)
		Expect(s.Load(ctx, s.namespace, kept.Digest())).NotTo(BeNil())
	})

	It("leaves other Secrets and other namespaces alone", func(ctx SpecContext) {
		s, elsewhere := newShelf(ctx, oneSecret), newShelf(ctx, oneSecret)
		Expect(elsewhere.Keep(ctx, elsewhere.namespace, variant(nil))).To(Succeed())
		stranger := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: "stranger", Labels: map[string]string{store.LabelRole: store.RoleHead},
		}}
		Expect(plane.Client.Create(ctx, stranger)).To(Succeed())
		Expect(s.Tidy(ctx, s.namespace, none)).To(BeEmpty())
		s.pass(2 * time.Hour)
		Expect(s.Tidy(ctx, s.namespace, none)).To(BeEmpty())
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(stranger), stranger)).To(Succeed())
		Expect(elsewhere.secrets(ctx, store.RoleHead)).To(HaveLen(1))
	})
})
