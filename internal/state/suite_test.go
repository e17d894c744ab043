package state_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

var (
	environment *envtest.Environment
	live        client.WithWatch
	namespace   string
	serialUID   int
)

func TestState(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "State")
}

var _ = BeforeSuite(func() {
	environment = &envtest.Environment{}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		environment.BinaryAssetsDirectory = filepath.Join("..", "..", "bin")
	}
	apiServer, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	apiServer.QPS = -1
	live, err = client.NewWithWatch(apiServer, client.Options{})
	Expect(err).NotTo(HaveOccurred())
})

var _ = BeforeEach(func(ctx SpecContext) {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "state-"}}
	Expect(live.Create(ctx, object)).To(Succeed())
	namespace = object.Name
})

// errDied is the error of a client whose process is dead.
var errDied = errors.New("the process died")

// faults is a client that counts writes and fails on demand. The fields may be changed between calls.
type faults struct {
	mu     sync.Mutex
	writes []string
	// dieAt is the number of the first write that fails, with all later ones; 0 for none.
	dieAt int
	// loseAt is the number of the write that succeeds but loses its response; 0 for none.
	loseAt int
	// away makes every call fail like a refused connection.
	away bool
	// before runs once, before the next write.
	before func()
	// beforeCopy runs once, before the next read of a version's copy.
	beforeCopy func()
	// instead handles each write; do executes it.
	instead func(verb string, object client.Object, do func() error) error
}

func (f *faults) client() client.Client {
	return interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			if f.isAway() {
				return errAway
			}
			if run := f.beforeCopyOf(key.Name); run != nil {
				run()
			}
			return c.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.CreateOption) error {
			return f.write("create", object, func() error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.UpdateOption) error {
			return f.write("update", object, func() error { return c.Update(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.DeleteOption) error {
			return f.write("delete", object, func() error { return c.Delete(ctx, object, options...) })
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("patches are not counted")
		},
	})
}

var errAway = &url.Error{Op: "Get", URL: "https://away", Err: io.EOF}

func (f *faults) isAway() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.away
}

func (f *faults) beforeCopyOf(name string) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.Contains(name, "-v") {
		return nil
	}
	run := f.beforeCopy
	f.beforeCopy = nil
	return run
}

func (f *faults) set(change func(*faults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faults) write(verb string, object client.Object, do func() error) error {
	f.mu.Lock()
	if f.away {
		f.mu.Unlock()
		return errAway
	}
	f.writes = append(f.writes, verb+" "+object.GetName())
	number, before := len(f.writes), f.before
	f.before = nil
	dead, lose, instead := f.dieAt > 0 && number >= f.dieAt, f.loseAt == number, f.instead
	f.mu.Unlock()
	if dead {
		return errDied
	}
	if before != nil {
		before()
	}
	if instead != nil {
		return instead(verb, object, do)
	}
	err := do()
	if lose && err == nil {
		return errAway
	}
	return err
}

func (f *faults) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.writes)
}

// as matches an error of type T.
func as[T error](matcher gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return WithTransform(func(err error) (T, error) {
		found, ok := errors.AsType[T](err)
		if !ok {
			return found, fmt.Errorf("got %w, want a %T", err, found)
		}
		return found, nil
	}, matcher)
}

// newKey returns the unused key of a new Machine.
func newKey() state.Key {
	serialUID++
	return state.KeyFor(namespace, types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", serialUID)))
}

func run(name string) state.Lock {
	return state.Lock{Owner: "manager-1", Run: name, Operation: "create", Since: time.Unix(1700000000, 123456789).UTC()}
}

// body returns a state with about the given compressed size.
func body(serial, size int, resources ...string) []byte {
	random := make([]byte, size)
	_, _ = rand.Read(random)
	var list []string
	for _, name := range resources {
		list = append(list, fmt.Sprintf(`{"mode":"managed","type":"node","name":%q,"provider":"p","instances":[{}]}`,
			name))
	}
	return fmt.Appendf(nil,
		`{"version":4,"serial":%d,"lineage":"lineage-1","outputs":{"noise":{"type":"string","value":%q}},"resources":[%s]}`,
		serial, base64.StdEncoding.EncodeToString(random), strings.Join(list, ","))
}

// small returns a store with small limits, so that a few kilobytes need parts and copies.
func small(c client.Client) *state.Store {
	return state.New(c, state.Options{ChunkBytes: 8 << 10, InlineBytes: 4 << 10})
}

func acquire(ctx context.Context, store *state.Store, key state.Key, lock state.Lock) *state.Session {
	GinkgoHelper()
	session, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: lock})
	Expect(err).NotTo(HaveOccurred())
	return session
}

func head(ctx context.Context, key state.Key) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, secret)).To(Succeed())
	return secret
}

// secretsOf lists the Secrets of a state with a role, or all if it is empty.
func secretsOf(ctx context.Context, key state.Key, role string) []string {
	GinkgoHelper()
	list := &corev1.SecretList{}
	Expect(live.List(ctx, list, client.InNamespace(key.Namespace))).To(Succeed())
	var names []string
	for _, secret := range list.Items {
		if strings.HasPrefix(secret.Name, key.Name) && (role == "" || secret.Labels[state.LabelRole] == role) {
			names = append(names, secret.Name)
		}
	}
	return names
}

// stockRead reads a state like Terraform's own backend: all Secrets with its four labels, sorted by the number at the
// end of their names.
func stockRead(ctx context.Context, key state.Key) ([]byte, error) {
	list := &corev1.SecretList{}
	if err := live.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{
		"tfstate": "true", "tfstateSecretSuffix": key.Suffix(), "tfstateWorkspace": "default",
		"app.kubernetes.io/managed-by": "terraform",
	}); err != nil {
		return nil, err
	}
	ordered := make([][]byte, len(list.Items))
	for _, secret := range list.Items {
		index, err := strconv.Atoi(secret.Name[strings.LastIndex(secret.Name, "-")+1:])
		if err != nil {
			index = 0
		}
		if index >= len(ordered) {
			return nil, fmt.Errorf("part %d of %d", index, len(ordered))
		}
		ordered[index] = secret.Data["tfstate"]
	}
	reader, err := gzip.NewReader(bytes.NewReader(bytes.Join(ordered, nil)))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
