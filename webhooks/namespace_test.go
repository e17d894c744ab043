package webhooks_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/test/suite"
	"github.com/machine-iac/machine-iac-operator/webhooks"
)

var _ = Describe("A namespace", func() {
	It("is not deleted with Machines in it if the manager is in it too", func(ctx context.Context) {
		own, other := suite.Namespace(ctx, plane), suite.Namespace(ctx, plane)
		start(ctx, func(o *webhooks.Options) { o.Namespace = own })
		remove := func(name string) error {
			return user.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		machine := machineWith(own, with(nil))
		Expect(plane.Client.Create(ctx, machine)).To(Succeed())
		Expect(plane.Client.Create(ctx, machineWith(other, with(nil)))).To(Succeed())
		Expect(remove(other)).To(Succeed())
		Expect(remove(own)).To(MatchError(And(
			ContainSubstring("denied the request: namespace "+own+" contains Machines (1)"),
			ContainSubstring("kubectl -n "+own+" delete machinesets.machine.openshift.io,machines.machine.openshift.io --all"),
		)))
		Expect(plane.Client.Delete(ctx, machine)).To(Succeed())
		Expect(remove(own)).To(Succeed())
	})
})
