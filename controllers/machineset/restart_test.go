package machineset_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("MachineSet and a controller that restarts", func() {
	It("goes 50 to 0 to 50: never more than 50 alive, none lost", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		set := builder.In(namespace, builder.MachineSet(builder.WithReplicas(0)))
		create(ctx, set)
		book := follow(ctx, namespace)
		for _, to := range []int{50, 0, 50} {
			By(fmt.Sprintf("going to %d", to))
			book.startPage()
			scale(ctx, set, int32(to))
			// A manager is stopped at its first, second and so on write: at the start of a batch,
			// in the midst of one, at its end. What is under way then may or may not be carried
			// out. The last ones may find everything done.
			for _, at := range []int{1, 2, 6, 7, 9} {
				var stopAt *tripwire
				stop := startManager(namespace, func(o *machineset.Options, mgr manager.Manager) {
					stopAt = newTripwire(mgr.GetClient(), at)
					o.Client = stopAt
				})
				Eventually(func() bool { return stopAt.hit() || book.alive() == to }).WithPolling(time.Millisecond).Should(BeTrue())
				stop()
			}
			stop := startManager(namespace)
			Eventually(book.alive).Should(Equal(to))
			Eventually(func() int32 { return statusOf(ctx, set)().Replicas }).Should(BeEquivalentTo(to))
			Consistently(book.alive).Should(Equal(to))
			stop()
			made, removed := book.page()
			Expect([]int{made, removed}).To(Equal([]int{to, 50 - to}), "Machines made and Machines removed on the way to %d", to)
		}
		Expect(book.mostAlive()).To(Equal(50))
	})
})

// tripwire is a client that reports when a number of Machines was about to be created or deleted.
type tripwire struct {
	client.Client
	left atomic.Int32
}

func newTripwire(c client.Client, at int) *tripwire {
	w := &tripwire{Client: c}
	w.left.Store(int32(at))
	return w
}

func (w *tripwire) hit() bool { return w.left.Load() <= 0 }

func (w *tripwire) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	w.left.Add(-1)
	return w.Client.Create(ctx, object, options...)
}

func (w *tripwire) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	w.left.Add(-1)
	return w.Client.Delete(ctx, object, options...)
}

// machineLog knows every Machine of a namespace that there ever was since the machineLog was
// opened.
type machineLog struct {
	mu            sync.Mutex
	living        map[types.UID]bool
	made, removed int
	most          int
}

// follow opens a machineLog. A watch feeds it, so that it misses no moment.
func follow(ctx context.Context, namespace string) *machineLog {
	GinkgoHelper()
	watching, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
	Expect(err).NotTo(HaveOccurred())
	changes, err := watching.Watch(ctx, &machinev1beta1.MachineList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(changes.Stop)
	book := &machineLog{living: map[types.UID]bool{}}
	go func() {
		for change := range changes.ResultChan() {
			if machine, ok := change.Object.(*machinev1beta1.Machine); ok {
				book.enter(machine, change.Type != watch.Deleted && machine.DeletionTimestamp.IsZero())
			}
		}
	}()
	return book
}

func (l *machineLog) enter(machine *machinev1beta1.Machine, lives bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case lives && !l.living[machine.UID]:
		l.living[machine.UID] = true
		l.made++
	case !lives && l.living[machine.UID]:
		delete(l.living, machine.UID)
		l.removed++
	}
	l.most = max(l.most, len(l.living))
}

// startPage begins to count anew what is made and removed.
func (l *machineLog) startPage() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made, l.removed = 0, 0
}

func (l *machineLog) page() (made, removed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made, l.removed
}

func (l *machineLog) alive() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.living)
}

func (l *machineLog) mostAlive() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}
