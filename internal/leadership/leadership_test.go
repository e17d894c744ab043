package leadership_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const leaseName = "leader"

var (
	environment envtest.Environment
	apiServer   *rest.Config
	clientset   *kubernetes.Clientset
	namespace   string
	clock       *clocktesting.FakeClock
	// paused is for how long the steady clock has stood still while the wall clock went on.
	paused time.Duration
	timing leadership.Timing
)

func TestLeadership(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Leadership")
}

var _ = BeforeSuite(func() {
	etcd, err := os.MkdirTemp("", "etcd")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, etcd)
	environment.ControlPlane.Etcd = &envtest.Etcd{DataDir: etcd} // one that it makes for itself is gone when it stops
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		environment.BinaryAssetsDirectory = filepath.Join("..", "..", "bin")
	}
	apiServer, err = environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	clientset, err = kubernetes.NewForConfig(apiServer)
	Expect(err).NotTo(HaveOccurred())
	timing, err = leadership.NewTiming(leadership.DefaultLease, 0, 0)
	Expect(err).NotTo(HaveOccurred())
})

var _ = BeforeEach(func(ctx SpecContext) {
	made, err := clientset.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "leadership-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	namespace = made.Name
	clock, paused = clocktesting.NewFakeClock(time.Now().Add(24*time.Hour)), 0 // it is not the API server's
})

// candidate is a process that takes part in the election. Its steps are those of client-go's
// elector, taken by hand: the elector has a clock of its own.
type candidate struct {
	*leadership.Leadership
	identity string
	renewals int
	away     bool
	// unstamped has dry runs fail, restored is what reads find instead of the Lease.
	unstamped bool
	restored  *coordinationv1.Lease
}

func join(identity string) *candidate {
	GinkgoHelper()
	return joinWith(leadership.Options{Namespace: namespace, Name: leaseName, Identity: identity})
}

func joinWith(o leadership.Options) *candidate {
	GinkgoHelper()
	identity := o.Identity
	c := &candidate{identity: identity}
	own, err := coordinationv1client.NewForConfig(apiServer)
	Expect(err).NotTo(HaveOccurred())
	o.Leases, o.Timing, o.Clock, o.Logger = leasesOf{own, c}, timing, clock, GinkgoLogr
	o.Renewed, o.Wall = func() { c.renewals++ }, func() time.Time { return clock.Now().Add(paused) }
	c.Leadership, err = leadership.New(o)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// leasesOf has requests fail while the API server is away for a candidate.
type leasesOf struct {
	coordinationv1client.LeasesGetter
	candidate *candidate
}

func (l leasesOf) Leases(namespace string) coordinationv1client.LeaseInterface {
	return &flaky{l.LeasesGetter.Leases(namespace), l.candidate}
}

type flaky struct {
	coordinationv1client.LeaseInterface
	candidate *candidate
}

var errAway = errors.New("connection refused")

func (f *flaky) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	if f.candidate.away {
		return nil, errAway
	}
	if f.candidate.restored != nil {
		return f.candidate.restored.DeepCopy(), nil
	}
	return f.LeaseInterface.Get(ctx, name, options)
}

func (f *flaky) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if f.candidate.unstamped && len(options.DryRun) > 0 {
		return nil, errAway
	}
	return f.LeaseInterface.Create(ctx, lease, options)
}

// step is one turn of the elector: it takes the Lease where it may, or renews it.
func (c *candidate) step(ctx context.Context) error {
	lock := c.ResourceLock()
	mine := resourcelock.LeaderElectionRecord{
		HolderIdentity: c.identity, LeaseDurationSeconds: int(timing.Lease / time.Second), RenewTime: metav1.NewTime(clock.Now()),
	}
	record, _, err := lock.Get(ctx)
	if apierrors.IsNotFound(err) {
		return lock.Create(ctx, mine)
	}
	if err != nil {
		return err
	}
	mine.LeaderTransitions = record.LeaderTransitions
	if record.HolderIdentity != c.identity {
		mine.LeaderTransitions++
	}
	return lock.Update(ctx, mine)
}

// leads has a candidate lead.
func leads(ctx context.Context, identity string) *candidate {
	GinkgoHelper()
	c := join(identity)
	Expect(c.step(ctx)).To(Succeed())
	return c
}

// succeeds has a candidate watch the Lease until it has expired, and take it over.
func succeeds(ctx context.Context, identity string) *candidate {
	GinkgoHelper()
	c := join(identity)
	_, _, err := c.ResourceLock().Get(ctx)
	Expect(err).NotTo(HaveOccurred())
	clock.Step(timing.Lease)
	Expect(c.step(ctx)).To(Succeed())
	return c
}

func remove(ctx context.Context) {
	GinkgoHelper()
	Expect(clientset.CoordinationV1().Leases(namespace).Delete(ctx, leaseName, metav1.DeleteOptions{})).To(Succeed())
}

// empty takes the Lease from its holder, as a person might.
func empty(ctx context.Context) {
	GinkgoHelper()
	lease := theLease(ctx)
	lease.Spec.HolderIdentity = ptr.To("")
	_, err := clientset.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func theLease(ctx context.Context) *coordinationv1.Lease {
	GinkgoHelper()
	lease, err := clientset.CoordinationV1().Leases(namespace).Get(ctx, leaseName, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return lease
}

var _ = Describe("A leader", func() {
	It("has the Lease's epoch, and is active until the renew deadline", func(ctx SpecContext) {
		a := join("a")
		Expect(a.Active()).To(BeFalse())
		Expect(a.Epoch()).To(Equal(state.Epoch{Holder: "a"}))
		Expect(a.Confirm(ctx)).To(MatchError(leadership.ErrNotLeader))
		Expect(a.step(ctx)).To(Succeed())
		Expect(a.Epoch()).To(Equal(state.Epoch{Lease: string(theLease(ctx).UID), Holder: "a"}))
		Expect(a.renewals).To(Equal(1))
		Expect(a.Confirm(ctx)).To(Succeed())
		clock.Step(timing.Renew - 1)
		Expect(a.Active()).To(BeTrue())
		clock.Step(1)
		Expect(a.Active()).To(BeFalse())
		Expect(a.Confirm(ctx)).To(MatchError(ContainSubstring("renew deadline of 1m47s")))
		Expect(a.Lost()).NotTo(BeClosed(), "nobody else leads")
		Expect(a.step(ctx)).To(Succeed())
		Expect(a.Active()).To(BeTrue())
		Expect(a.Confirm(ctx)).To(Succeed())
	})

	It("does not confirm without the API server, except what it has just read", func(ctx SpecContext) {
		a := leads(ctx, "a")
		Expect(a.Confirm(ctx)).To(Succeed())
		a.away = true
		clock.Step(time.Second - 1)
		Expect(a.Confirm(ctx)).To(Succeed())
		clock.Step(1)
		Expect(a.Confirm(ctx)).To(And(MatchError(errAway), Not(MatchError(leadership.ErrNotLeader))))
		Expect(a.Active()).To(BeTrue())
	})

	It("that is stopped and goes on beside its successor sees it by a look, and takes no other term", func(ctx SpecContext) {
		a := leads(ctx, "a")
		b := succeeds(ctx, "b")
		Expect(a.Active()).To(BeFalse(), "it has not renewed for longer than the deadline")
		Expect(a.Confirm(ctx)).To(MatchError(leadership.ErrNotLeader))
		Expect(a.Lost()).To(BeClosed())
		Expect(a.step(ctx)).To(MatchError(leadership.ErrNotLeader))
		Expect(b.Confirm(ctx)).To(Succeed())
		Expect(b.Epoch().Transitions).To(Equal(int64(1)))
	})

	It("that has not renewed in time looks at the Lease between its renewals", func(ctx SpecContext) {
		a := leads(ctx, "a")
		succeeds(ctx, "b")
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			a.Watch(ctx)
		}()
		Eventually(clock.HasWaiters).Should(BeTrue())
		clock.Step(timing.Heartbeat / 3)
		Eventually(watched).Should(BeClosed())
		Expect(a.Lost()).To(BeClosed())
	})

	It("that does not know that time has passed sees by a look that another leads", func(ctx SpecContext) {
		a := leads(ctx, "a")
		go a.Watch(ctx)
		Eventually(clock.HasWaiters).Should(BeTrue())
		empty(ctx)
		leads(ctx, "b") // on another machine, a lease later
		Expect(a.Active()).To(BeTrue())
		clock.Step(timing.Heartbeat / 3)
		Eventually(a.Lost()).Should(BeClosed())
	})

	It("does not take a read from before a pause for one of now", func(ctx SpecContext) {
		a := leads(ctx, "a")
		Expect(a.Confirm(ctx)).To(Succeed())
		empty(ctx)
		leads(ctx, "b")
		Expect(a.Confirm(ctx)).To(Succeed(), "it has just read the Lease")
		paused = time.Second
		Expect(a.Confirm(ctx)).To(MatchError(leadership.ErrNotLeader))
	})

	It("does not act after a pause beyond the renew deadline, and renews at once a Lease that nobody took", func(ctx SpecContext) {
		a := leads(ctx, "a")
		paused = timing.Renew - 1
		Expect(a.Active()).To(BeTrue())
		paused = timing.Renew
		Expect(a.Active()).To(BeFalse(), "heartbeats stop")
		Expect(a.Confirm(ctx)).To(MatchError(ContainSubstring("renew deadline of 1m47s")))
		go a.Watch(ctx)
		Eventually(clock.HasWaiters).Should(BeTrue())
		clock.Step(timing.Heartbeat / 3)
		Eventually(a.Active).Should(BeTrue())
		Expect(theLease(ctx).Spec.RenewTime.Time).To(BeTemporally("~", clock.Now().Add(paused), time.Millisecond))
		Expect(a.Confirm(ctx)).To(Succeed())
	})

	It("does not wait less for others because the wall clock was set", func(ctx SpecContext) {
		a := leads(ctx, "a")
		paused = time.Hour
		Expect(a.step(ctx)).To(Succeed())
		Expect(a.DeadIn(ctx, state.Epoch{Holder: "alone"})).To(Equal(timing.DeadAfter()))
	})

	It("knows when its term began by the API server's clock", func(ctx SpecContext) {
		older, err := clientset.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "older"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		a := join("a")
		Expect(a.Began()).To(BeZero())
		Expect(a.step(ctx)).To(Succeed())
		began := a.Began()
		Expect(began.Nanosecond()).To(BeZero())
		Expect(older.CreationTimestamp.Time).To(BeTemporally("<", began))
		Expect(theLease(ctx).CreationTimestamp.Time).To(BeTemporally("<", began), "of the same second, or the one before")
		Expect(began).To(BeTemporally("<", time.Now().Add(time.Minute)), "this machine's clock is a day ahead")
		leases, err := clientset.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(leases.Items).To(HaveLen(1), "asking for the time stores nothing")
		Expect(a.step(ctx)).To(Succeed())
		Expect(a.Began()).To(Equal(began), "a renewal begins no term")
		time.Sleep(time.Until(began)) // a Machine of the term
		Expect(succeeds(ctx, "b").Began()).To(BeTemporally(">", began))
	})

	It("does not lead before it knows when its term began", func(ctx SpecContext) {
		a := leads(ctx, "a")
		b := join("b")
		b.unstamped = true
		_, _, err := b.ResourceLock().Get(ctx)
		Expect(err).NotTo(HaveOccurred())
		clock.Step(timing.Lease)
		Expect(b.step(ctx)).To(MatchError(errAway))
		Expect(b.Active()).To(BeFalse())
		Expect(b.renewals).To(BeZero())
		b.unstamped = false
		clock.Step(time.Second)
		Expect(b.step(ctx)).To(Succeed())
		Expect(b.Active()).To(BeTrue())
		Expect(b.Began()).NotTo(BeZero())
		Expect(b.DeadIn(ctx, a.Epoch())).To(BeZero(), "it has waited for the lease of the one before")
	})

	It("loses by a Lease that went back in time", func(ctx SpecContext) {
		a := leads(ctx, "a")
		backup := theLease(ctx)
		clock.Step(time.Second)
		Expect(a.step(ctx)).To(Succeed())
		clock.Step(time.Second)
		Expect(a.Confirm(ctx)).To(Succeed())
		a.restored = backup
		clock.Step(time.Second)
		Expect(a.Confirm(ctx)).To(MatchError(MatchRegexp("the API server was restored from a backup: .* %s to %s", theLease(ctx).ResourceVersion, backup.ResourceVersion)))
		Expect(a.Lost()).To(BeClosed())
	})

	It("does not take what others write into the Lease for a restore", func(ctx SpecContext) {
		a := leads(ctx, "a")
		lease := theLease(ctx)
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, "note", "of a person")
		_, err := clientset.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Confirm(ctx)).To(Succeed())
		Expect(a.step(ctx)).To(Succeed())
		clock.Step(time.Second)
		Expect(a.Confirm(ctx)).To(Succeed())
	})

	It("loses by a Lease that is deleted, and makes no other", func(ctx SpecContext) {
		a := leads(ctx, "a")
		remove(ctx)
		Expect(a.step(ctx)).To(MatchError(leadership.ErrNotLeader))
		Expect(a.Lost()).To(BeClosed())
		_, err := clientset.CoordinationV1().Leases(namespace).Get(ctx, leaseName, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("loses by another Lease of the same name, even one that it holds", func(ctx SpecContext) {
		a := leads(ctx, "a")
		again := theLease(ctx)
		remove(ctx)
		again.UID, again.ResourceVersion = "", ""
		_, err := clientset.CoordinationV1().Leases(namespace).Create(ctx, again, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Confirm(ctx)).To(MatchError(leadership.ErrNotLeader))
		Expect(a.Lost()).To(BeClosed())
	})

	It("that meets a higher epoch reads the Lease, and has lost if another leads", func(ctx SpecContext) {
		a := leads(ctx, "a")
		Expect(a.Confirm(ctx)).To(Succeed())
		lease := theLease(ctx)
		lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To("b"), ptr.To[int32](1)
		_, err := clientset.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Confirm(ctx)).To(Succeed(), "by what it has just read")
		_, err = a.DeadIn(ctx, state.Epoch{Lease: string(lease.UID), Transitions: 1, Holder: "b"})
		Expect(err).To(MatchError(leadership.ErrNotLeader))
		Expect(a.Lost()).To(BeClosed())
	})

	It("that meets a higher epoch which the Lease does not have goes on, and treats it as one of another Lease", func(ctx SpecContext) {
		a := leads(ctx, "a")
		forged := a.Epoch()
		forged.Transitions = 1e18
		for _, holder := range []string{"b", "a"} {
			forged.Holder = holder
			Expect(a.DeadIn(ctx, forged)).To(Equal(timing.DeadAfter()))
		}
		a.away = true
		_, err := a.DeadIn(ctx, forged)
		Expect(err).To(MatchError(errAway), "what was read before says nothing")
		a.away = false
		for range 6 {
			clock.Step(timing.Retry)
			Expect(a.step(ctx)).To(Succeed())
		}
		Expect(a.DeadIn(ctx, forged)).To(BeZero())
		Expect(a.Lost()).NotTo(BeClosed())
		Expect(a.Confirm(ctx)).To(Succeed())
	})

	It("gives the Lease back only on Release", func(ctx SpecContext) {
		a := leads(ctx, "a")
		Expect(a.ResourceLock().Update(ctx, resourcelock.LeaderElectionRecord{})).To(MatchError(ContainSubstring("until all engines of this process have ended")), "as the elector would")
		Expect(*theLease(ctx).Spec.HolderIdentity).To(Equal("a"))
		Expect(a.Release(ctx)).To(Succeed())
		Expect(*theLease(ctx).Spec.HolderIdentity).To(BeEmpty())
		Expect(a.Active()).To(BeFalse())
		Expect(a.Confirm(ctx)).To(MatchError(leadership.ErrNotLeader))
		Expect(a.Lost()).NotTo(BeClosed())
		Expect(a.Release(ctx)).To(Succeed())
	})

	It("does not give away what is another's", func(ctx SpecContext) {
		a := leads(ctx, "a")
		succeeds(ctx, "b")
		Expect(a.Release(ctx)).To(Succeed())
		Expect(*theLease(ctx).Spec.HolderIdentity).To(Equal("b"))
	})
})

var _ = Describe("The engines of another epoch", func() {
	deadIn := func(ctx context.Context, c *candidate, held state.Epoch) time.Duration {
		GinkgoHelper()
		wait, err := c.DeadIn(ctx, held)
		Expect(err).NotTo(HaveOccurred())
		return wait
	}

	It("are dead when the Lease expired", func(ctx SpecContext) {
		a := leads(ctx, "a")
		b := succeeds(ctx, "b")
		Expect(deadIn(ctx, b, a.Epoch())).To(BeZero())
		Expect(deadIn(ctx, b, b.Epoch())).NotTo(BeZero(), "its own live")
	})

	It("are dead when their manager gave the Lease back; what was before it is not known to be", func(ctx SpecContext) {
		first := leads(ctx, "a")
		empty(ctx)
		second := leads(ctx, "b")
		Expect(second.Release(ctx)).To(Succeed())
		third := leads(ctx, "c")
		Expect(third.Epoch().Transitions).To(Equal(int64(2)))
		Expect(deadIn(ctx, third, second.Epoch())).To(BeZero())
		Expect(deadIn(ctx, third, first.Epoch())).To(Equal(timing.DeadAfter()))
	})

	DescribeTable("may live when the Lease was taken from them", func(ctx SpecContext, take func(context.Context)) {
		a := leads(ctx, "a")
		held := a.Epoch()
		take(ctx)
		b := leads(ctx, "b")
		Expect(deadIn(ctx, b, held)).To(Equal(timing.DeadAfter()))
		clock.Step(timing.Retry)
		Expect(b.step(ctx)).To(Succeed())
		Expect(deadIn(ctx, b, held)).To(Equal(timing.DeadAfter()-timing.Retry), "a renewal begins no term")
		for range 5 {
			clock.Step(timing.Retry)
			Expect(b.step(ctx)).To(Succeed())
		}
		Expect(deadIn(ctx, b, held)).To(BeZero())
		Expect(a.Confirm(ctx)).To(MatchError(leadership.ErrNotLeader))
	},
		Entry("by deleting it", remove),
		Entry("by emptying it", empty),
	)

	It("may live when their lock has no epoch", func(ctx SpecContext) {
		a := leads(ctx, "a")
		Expect(deadIn(ctx, a, state.Epoch{})).To(Equal(timing.DeadAfter()))
		Expect(deadIn(ctx, a, state.Epoch{Holder: "alone"})).To(Equal(timing.DeadAfter()))
	})

	It("are not known to be dead by a process that can't confirm that it leads", func(ctx SpecContext) {
		a := leads(ctx, "a")
		b := succeeds(ctx, "b")
		b.away = true
		_, err := b.DeadIn(ctx, a.Epoch())
		Expect(err).To(MatchError(errAway))
	})
})

var _ = Describe("A leader by another Lease than earlier versions", func() {
	moved := func() *candidate {
		GinkgoHelper()
		return joinWith(leadership.Options{
			Namespace: namespace, Name: "new-" + leaseName, Identity: "b", Former: types.NamespacedName{Namespace: namespace, Name: leaseName},
		})
	}

	It("leads at once where no earlier version did", func(ctx SpecContext) {
		b := moved()
		Expect(b.step(ctx)).To(Succeed())
		Expect(b.Confirm(ctx)).To(Succeed())
	})

	It("waits while an earlier version leads, and for the end of its lease", func(ctx SpecContext) {
		a, b := leads(ctx, "a"), moved()
		for range 10 {
			Expect(b.step(ctx)).To(MatchError(ContainSubstring("its holder is a, and 2m17s must pass")))
			clock.Step(timing.Retry)
			Expect(a.step(ctx)).To(Succeed())
		}
		Expect(b.step(ctx)).NotTo(Succeed())
		clock.Step(timing.Lease - 1)
		Expect(b.step(ctx)).NotTo(Succeed())
		Expect(b.Active()).To(BeFalse())
		_, err := clientset.CoordinationV1().Leases(namespace).Get(ctx, "new-"+leaseName, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		clock.Step(1)
		Expect(b.step(ctx)).To(Succeed())
		Expect(a.Confirm(ctx)).To(MatchError(leadership.ErrNotLeader))
		Expect(b.DeadIn(ctx, a.Epoch())).To(Equal(timing.DeadAfter()), "its epoch is of another Lease")
	})

	It("leads at once where the last of an earlier version gave its Lease back, and none of them can lead again", func(ctx SpecContext) {
		Expect(leads(ctx, "a").Release(ctx)).To(Succeed())
		b := moved()
		Expect(b.step(ctx)).To(Succeed())
		Expect(*theLease(ctx).Spec.HolderIdentity).To(Equal("moved to " + namespace + "/new-" + leaseName))
		Expect(time.Duration(*theLease(ctx).Spec.LeaseDurationSeconds) * time.Second).To(BeNumerically(">", 60*365*24*time.Hour))
		version := theLease(ctx).ResourceVersion
		Expect(b.step(ctx)).To(Succeed())
		clock.Step(timing.Lease)
		c := moved()
		Expect(c.step(ctx)).To(Succeed())
		Expect(theLease(ctx).ResourceVersion).To(Equal(version), "it is retired once")
	})
})

var _ = Describe("A process without leader election", func() {
	It("leads, and others are dead", func(ctx SpecContext) {
		alone := leadership.Alone("a")
		Expect(alone.Confirm(ctx)).To(Succeed())
		Expect(alone.Active()).To(BeTrue())
		Expect(alone.Lost()).NotTo(BeClosed())
		Expect(alone.Epoch()).To(Equal(state.Epoch{Holder: "a"}))
		Expect(alone.DeadIn(ctx, state.Epoch{Holder: "b"})).To(BeZero())
		Expect(alone.DeadIn(ctx, alone.Epoch())).NotTo(BeZero())
		Expect(alone.ResourceLock()).To(BeNil())
		Expect(alone.Began()).To(BeTemporally("~", time.Now(), time.Minute))
		Expect(alone.Release(ctx)).To(Succeed())
		alone.Watch(ctx)
	})
})
