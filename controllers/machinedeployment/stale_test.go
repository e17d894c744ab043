package machinedeployment_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machinedeployment"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// stale reads from a snapshot, as from a cache whose watch has stalled.
type stale struct {
	client.Client
	snapshot client.Reader
}

func (c stale) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.snapshot.Get(ctx, key, object, options...)
}

func (c stale) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.snapshot.List(ctx, list, options...)
}

var errUnreachable = errors.New("connect: no route to host")

// unreachable is an API server that cannot be read.
type unreachable struct{ client.Reader }

func (unreachable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errUnreachable
}

var _ = Describe("A MachineDeployment and the cache", func() {
	It("writes nothing that only a stale cache asks for", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.RollingUpdate, 1, 0))
		l.change(ctx, template(large))
		l.rounds(ctx, 3)
		deployments := &v1beta1.MachineDeploymentList{Items: []v1beta1.MachineDeployment{*l.read(ctx)}}
		snapshot := fake.NewClientBuilder().WithScheme(plane.Scheme).WithLists(deployments,
			&machinev1beta1.MachineSetList{Items: l.sets(ctx)}, &machinev1beta1.MachineList{Items: l.machines(ctx)}).Build()
		l.settle(ctx)
		versions := func() (out []string) {
			for _, set := range l.sets(ctx) {
				out = append(out, set.ResourceVersion)
			}
			return out
		}
		before := versions()
		controller := machinedeployment.New(machinedeployment.Options{Common: common(stale{plane.Client, snapshot})})
		_, err := controller.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(l.deployment)})
		Expect(err).NotTo(HaveOccurred())
		Expect(versions()).To(Equal(before))
	})

	It("does nothing in mid-rollout while the API server cannot be read", func(ctx SpecContext) {
		for _, next := range []spec{tagged, large} {
			l := newLab(ctx)
			l.change(ctx, template(next))
			l.rounds(ctx, 2)
			sets, machines := l.sets(ctx), l.machines(ctx)
			options := common(plane.Client)
			options.Reader = unreachable{}
			_, err := machinedeployment.New(machinedeployment.Options{Common: options}).Reconcile(ctx,
				reconcile.Request{NamespacedName: client.ObjectKeyFromObject(l.deployment)})
			Expect(err).To(MatchError(errUnreachable))
			Expect(l.sets(ctx)).To(Equal(sets))
			Expect(l.machines(ctx)).To(Equal(machines))
		}
	})

	It("is woken by what changes", func(ctx SpecContext) {
		l := labIn(suite.Namespace(ctx, plane))
		mgr := suite.NewManager(plane, l.namespace)
		Expect(machinedeployment.SetupWithManager(mgr, machinedeployment.Options{})).To(Succeed())
		suite.Run(mgr)
		Expect(plane.Client.Create(ctx, l.deployment)).To(Succeed())
		for _, next := range []spec{small, tagged, large} {
			l.change(ctx, template(next))
			Eventually(func() bool {
				l.follow(ctx)
				return l.read(ctx).Status.UpdatedReplicas == 3 && l.quiet(ctx, l.read(ctx))
			}).WithTimeout(time.Minute).Should(BeTrue())
		}
	})
})
