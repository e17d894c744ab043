package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	// defaultChunkBytes stays below the API server's limit for a Secret.
	defaultChunkBytes = 960 << 10
	// maxKept limits the modules in memory, each at most 4 MiB of files. A cluster has Machines of a
	// few; others are read on demand.
	maxKept = 64
	// defaultGrace is longer than any run takes to record which module it uses.
	defaultGrace = time.Hour
)

// Options of a Store. The zero value is usable.
type Options struct {
	// Clock measures how long a module has been unused. Defaults to the system clock.
	Clock clock.PassiveClock
	// ChunkBytes is the maximum size of an archive in one Secret. Defaults to 960 KiB.
	ChunkBytes int
	// Grace is how long a module must have been unused before it is removed. Defaults to an hour.
	Grace time.Duration
	// Keys sign stored content, and content that they have not signed is not loaded. With nil, nothing
	// is signed and everything is loaded.
	Keys *Keys
	// Vouched means that without Keys, only Known content is loaded.
	Vouched bool
	// Known reports whether content is that of a module which this program has loaded, so that the
	// stored copy may be signed. Nil means none.
	Known func(digest string) bool
}

// Store keeps modules in Secrets. It caches what it has written and read. It is safe for concurrent
// use.
type Store struct {
	client  client.Client
	options Options

	// writing is held while a module is stored: concurrent creates of one Secret would each charge a
	// namespace's quota.
	writing sync.Mutex

	mu sync.Mutex
	// kept are the modules known to be stored, with their content.
	kept map[location]*module.Module
	// unused is since when each stored module has not been needed.
	unused map[location]time.Time
}

// location is where a module is stored.
type location struct{ namespace, digest string }

func (p location) object() types.NamespacedName {
	return types.NamespacedName{Namespace: p.namespace, Name: headName(p.digest)}
}

// New returns a Store. The client must read the API server directly.
func New(live client.Client, options Options) *Store {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.ChunkBytes <= 0 {
		options.ChunkBytes = defaultChunkBytes
	}
	if options.Grace <= 0 {
		options.Grace = defaultGrace
	}
	if options.Known == nil {
		options.Known = func(string) bool { return false }
	}
	return &Store{client: live, options: options, kept: map[location]*module.Module{}, unused: map[location]time.Time{}}
}

// Keep stores and signs a module in a namespace unless it is stored already. It replaces a damaged
// copy.
func (s *Store) Keep(ctx context.Context, namespace string, m *module.Module) error {
	at := location{namespace: namespace, digest: m.Digest()}
	if s.recall(at) != nil {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.recall(at) != nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("waiting to store the module: %w", err)
	}
	_, proven, err := s.read(ctx, at, true)
	switch {
	case IsMissing(err):
		err = s.write(ctx, at, m, !errors.Is(err, ErrNotFound))
	case err == nil && !proven && s.options.Keys != nil:
		err = s.sign(ctx, at)
	}
	if err != nil {
		return fmt.Errorf("keeping module %s: %w", m.Reference(), err)
	}
	s.remember(at, m)
	return nil
}

// Load returns a stored module. It returns ErrNotFound if there is none, a *DamagedError if it is
// unusable, and an *UnprovenError if it is not signed.
func (s *Store) Load(ctx context.Context, namespace, digest string) (*module.Module, error) {
	at := location{namespace: namespace, digest: digest}
	if known := s.recall(at); known != nil {
		return known, nil
	}
	loaded, proven, err := s.read(ctx, at, s.options.Known(digest))
	if s.needsProof(digest) && !proven && !errors.Is(err, ErrNotFound) && (err == nil || IsMissing(err)) {
		err = &UnprovenError{Secret: at.object().String()}
	}
	if err != nil {
		return nil, fmt.Errorf("loading module sha256:%s: %w", digest, err)
	}
	s.remember(at, loaded)
	return loaded, nil
}

// needsProof reports whether content must be signed to be used.
func (s *Store) needsProof(digest string) bool {
	return (s.options.Keys != nil || s.options.Vouched) && !s.options.Known(digest)
}

// recall returns a module that is known to be stored, and marks it as needed.
func (s *Store) recall(at location) *module.Module {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.kept[at]
	if known != nil {
		delete(s.unused, at)
	}
	return known
}

func (s *Store) remember(at location, m *module.Module) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[at] = m
	delete(s.unused, at)
	for other := range s.kept {
		if len(s.kept) > maxKept && other != at {
			delete(s.kept, other)
		}
	}
}

// read returns a stored module, and whether it is signed. known means that content with the digest
// is known to be chosen by an administrator.
func (s *Store) read(ctx context.Context, at location, known bool) (stored *module.Module, proven bool, err error) {
	head := &corev1.Secret{}
	if err := s.client.Get(ctx, at.object(), head); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, false, ErrNotFound
		}
		return nil, false, fmt.Errorf("reading Secret %s: %w", at.object(), err)
	}
	proven = s.options.Keys.proven(at.digest, head)
	names, archive, err := partsOf(at.digest, head)
	if err != nil {
		return nil, proven, &DamagedError{Secret: at.object().String(), Err: err}
	}
	raw := bytes.Clone(head.Data[dataArchive])
	for _, name := range names {
		part := &corev1.Secret{}
		err := s.client.Get(ctx, types.NamespacedName{Namespace: at.namespace, Name: name}, part)
		if apierrors.IsNotFound(err) {
			return nil, proven, &DamagedError{Secret: at.object().String(), Err: fmt.Errorf("its part %s is missing", name)}
		}
		if err != nil {
			return nil, proven, fmt.Errorf("reading Secret %s/%s: %w", at.namespace, name, err)
		}
		if raw = append(raw, part.Data[dataArchive]...); len(raw) > module.MaxArchiveBytes {
			err := fmt.Errorf("its Secrets have more than %d bytes", module.MaxArchiveBytes)
			return nil, proven, &DamagedError{Secret: at.object().String(), Err: err}
		}
	}
	stored, err = unpack(raw, archive, at.digest, proven || known)
	if err != nil {
		return nil, proven, &DamagedError{Secret: at.object().String(), Err: err}
	}
	return stored, proven, nil
}

// sign writes the proof for a stored module. The proof covers the digest only, so the content need
// not be read.
func (s *Store) sign(ctx context.Context, at location) error {
	head := &corev1.Secret{}
	err := s.client.Get(ctx, at.object(), head)
	if err == nil {
		metav1.SetMetaDataAnnotation(&head.ObjectMeta, AnnotationSignature, s.options.Keys.sign(at.digest))
		err = s.client.Update(ctx, head)
	}
	if err != nil {
		return fmt.Errorf("signing the module in Secret %s: %w", at.object(), err)
	}
	return nil
}

// write writes the Secrets of a module. An existing part is from an earlier attempt, and its name
// identifies its content. With anew, after damage, it replaces all of them.
func (s *Store) write(ctx context.Context, at location, m *module.Module, anew bool) error {
	secrets, err := secretsFor(at.namespace, m, s.options)
	if err != nil {
		return err
	}
	for _, secret := range slices.Backward(secrets) {
		if !anew {
			break
		}
		if err := s.delete(ctx, client.ObjectKeyFromObject(secret)); err != nil {
			return err
		}
	}
	for _, secret := range secrets {
		if err := s.client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("writing Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
	}
	_, proven, err := s.read(ctx, at, true) // another writer may have been faster; readable content is fine
	if err == nil && !proven && s.options.Keys != nil {
		return s.sign(ctx, at)
	}
	return err
}

func (s *Store) delete(ctx context.Context, name types.NamespacedName) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := s.client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s: %w", name, err)
	}
	return nil
}
