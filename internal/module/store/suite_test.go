package store_test

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestModuleStore(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Module store")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.Default) })

// shelf is a store in a namespace of its own, and what it costs.
type shelf struct {
	*store.Store
	namespace string
	clock     *clocktesting.FakePassiveClock
	calls     *atomic.Int32
	// failing fails the creation of heads.
	failing *atomic.Bool
	// keys and known are those of the store.
	keys  *store.Keys
	known func(digest string) bool
}

func newShelf(ctx context.Context, chunk int) *shelf {
	GinkgoHelper()
	s := &shelf{
		namespace: suite.Namespace(ctx, plane), clock: clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0)),
		calls: &atomic.Int32{}, failing: &atomic.Bool{},
	}
	s.restart(chunk)
	return s
}

// restart forgets what the store remembers, as a new process does.
func (s *shelf) restart(chunk int) {
	GinkgoHelper()
	live, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
	Expect(err).NotTo(HaveOccurred())
	counted := interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			s.calls.Add(1)
			return c.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			s.calls.Add(1)
			if s.failing.Load() && object.GetLabels()[store.LabelRole] == store.RoleHead {
				return context.DeadlineExceeded
			}
			return c.Create(ctx, object, options...)
		},
	})
	s.Store = store.New(counted, store.Options{Clock: s.clock, ChunkBytes: chunk, Keys: s.keys, Known: s.known})
}

// secrets returns what is stored, by role.
func (s *shelf) secrets(ctx context.Context, role string) []corev1.Secret {
	GinkgoHelper()
	list := &corev1.SecretList{}
	Expect(plane.Client.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{store.LabelRole: role})).To(Succeed())
	return list.Items
}

// pass lets time go by.
func (s *shelf) pass(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

// variant loads the kubemark module with a further file.
func variant(extra []byte) *module.Module {
	GinkgoHelper()
	shipped, err := fs.Sub(modules.FS, "kubemark")
	Expect(err).NotTo(HaveOccurred())
	files := fstest.MapFS{"extra.txt": {Data: extra}}
	Expect(fs.WalkDir(shipped, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[name] = &fstest.MapFile{}
			files[name].Data, err = fs.ReadFile(shipped, name)
		}
		return err
	})).To(Succeed())
	loaded, err := load.Module(files)
	Expect(err).NotTo(HaveOccurred())
	return loaded
}

// noise returns bytes that do not compress.
func noise(size int) []byte {
	source := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, size)
	for i := range raw {
		raw[i] = byte(source.Uint32())
	}
	return raw
}

func none(string) bool { return false }

func only(digests ...string) func(string) bool {
	return func(digest string) bool { return slices.Contains(digests, digest) }
}
