package state_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// zipped compresses content that a store would reject.
func zipped(content []byte) []byte {
	GinkgoHelper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err := writer.Write(content)
	Expect(err).NotTo(HaveOccurred())
	Expect(writer.Close()).To(Succeed())
	return packed.Bytes()
}

var _ = Describe("A head that somebody has forged", func() {
	const record = "machine-iac.io/record"

	DescribeTable("concerns its own Machine alone", func(ctx SpecContext, forge func(*corev1.Secret), want string) {
		store, key, other := state.New(live, state.Options{}), newKey(), newKey()
		for _, one := range []state.Key{key, other} {
			session := acquire(ctx, store, one, run("r1"))
			Expect(session.Put(ctx, body(1, 100, "this"))).To(Succeed())
			Expect(session.Release(ctx, nil)).To(Succeed())
		}
		touch(ctx, key, forge)
		_, err := store.Get(ctx, key)
		Expect(err).
			To(as[*state.CorruptError](MatchError(And(ContainSubstring(want), ContainSubstring("state "+key.String()),
				ContainSubstring("docs/contracts/state.md")))))
		_, err = store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2")})
		Expect(err).To(as[*state.CorruptError](Not(BeNil())))
		heads, err := store.List(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(heads).To(HaveLen(2))
		acquire(ctx, store, other, run("r2"))
	},
		Entry("with a copy of many Secrets", func(s *corev1.Secret) {
			s.Annotations[record] = `{"format":1,"current":{"serial":1,"lineage":"l","sha256":"s","blob":{"name":"x","chunks":900000000}}}`
		}, "900000000"),
		Entry("with a copy of fewer Secrets than none", func(s *corev1.Secret) {
			s.Annotations[record] = `{"format":1,"current":{"serial":1,"lineage":"l","sha256":"s","blob":{"name":"x","chunks":-7}}}`
		}, "-7"),
		Entry("with a bomb", func(s *corev1.Secret) { s.Data["tfstate"] = zipped(make([]byte, 30<<20)) },
			"it is larger than 16 MiB"),
		Entry("with a bomb of values", func(s *corev1.Secret) {
			s.Data["tfstate"] = zipped([]byte(`{"version":4,"serial":1,"lineage":"l","resources":[` +
				strings.Repeat("{},", 1<<20) + `{}]}`))
		}, "values and may have"),
		Entry("with the last serial", func(s *corev1.Secret) {
			s.Data["tfstate"] = zipped(
				[]byte(`{"version":4,"serial":18446744073709551615,"lineage":"l","resources":[]}`))
		}, "its serial 18446744073709551615"),
	)

	It("of a state that could not be saved names no more Secrets than there can be", func(ctx SpecContext) {
		store, key := state.New(live, state.Options{}), newKey()
		for _, chunks := range []string{"900000000", "-1", "0"} {
			kept, err := store.SaveOrphan(ctx, key, body(1, 100, chunks), state.OrphanOptions{})
			Expect(err).NotTo(HaveOccurred())
			name := types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name}
			secret := &corev1.Secret{}
			Expect(live.Get(ctx, name, secret)).To(Succeed())
			secret.Annotations["machine-iac.io/orphan"] = strings.Replace(secret.Annotations["machine-iac.io/orphan"],
				`"chunks":1`, `"chunks":`+chunks, 1)
			Expect(live.Update(ctx, secret)).To(Succeed())
			_, _, err = store.ReadOrphan(ctx, name)
			Expect(err).To(MatchError(And(ContainSubstring("has "+chunks+" Secrets"), ContainSubstring(kept.Name))))
			Expect(store.DeleteOrphan(ctx, name)).To(MatchError(ContainSubstring("has " + chunks + " Secrets")))
		}
	})

	It("has no more removed at once than a copy can have", func(ctx SpecContext) {
		gets := 0
		store, key := state.New(interceptor.NewClient(live, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, object client.Object,
				options ...client.GetOption) error {
				gets++
				return c.Get(ctx, name, object, options...)
			},
		}), state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		Expect(session.Put(ctx, body(1, 100, "this"))).To(Succeed())
		Expect(session.Release(ctx, nil)).To(Succeed())
		var trash []string
		for i := range 3 {
			trash = append(trash, fmt.Sprintf(`{"name":"%s-v1-%d","chunks":40}`, key.Name, i))
		}
		touch(ctx, key, func(s *corev1.Secret) {
			s.Annotations[record] = strings.TrimSuffix(s.Annotations[record], "}") + `,"trash":[` +
				strings.Join(trash, ",") + `]}`
		})
		for _, left := range []int{1, 0} { // the start and the end of a session remove one each
			gets = 0
			session = acquire(ctx, store, key, run("r2"))
			Expect(gets).To(BeNumerically("<", 50))
			gets = 0
			Expect(session.Release(ctx, nil)).To(Succeed())
			Expect(gets).To(BeNumerically("<", 50))
			Expect(strings.Count(head(ctx, key).Annotations[record], `"chunks":40`)).To(Equal(left))
		}
	})
})
