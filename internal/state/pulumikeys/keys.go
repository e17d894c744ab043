package pulumikeys

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
)

const (
	// SecretName is the name of the Secret with the keys.
	SecretName = "machine-iac-pulumi-keys"
	// SecretType is the Secret's type. It keeps other programs from using the Secret.
	SecretType corev1.SecretType = "machine-iac.io/pulumi-keys"
	// DefaultGrace is the default of Options.Grace.
	DefaultGrace = 24 * time.Hour
)

// ErrUnknown means that the Secret has no such key.
var ErrUnknown = errors.New("it is not among the keys of this cluster")

// Options configure Keys.
type Options struct {
	// Namespace of the Secret: the manager's.
	Namespace string
	// Grace is how long a replaced key is kept even if unused: an active run that started with it still writes with it.
	// Defaults to DefaultGrace.
	Grace time.Duration
	// Clock defaults to the system clock.
	Clock clock.PassiveClock
}

// Keys are the keys of a cluster. They are safe for concurrent use.
type Keys struct {
	client  client.Client
	options Options

	// newKey and readKey are functions of package pulumi; they take a good part of a second.
	newKey  func(ctx context.Context) (*pulumi.Key, error)
	readKey func(ctx context.Context, passphrase, salt string) (*pulumi.Key, error)

	mu sync.Mutex
	// derived caches keys by salt.
	derived map[string]*pulumi.Key
}

// New returns the keys in the Secret of a namespace. The client must read from the API server without a cache, so that
// a new key is never created twice. It needs get, create and update of Secrets there.
func New(live client.Client, options Options) (*Keys, error) {
	if options.Namespace == "" {
		return nil, errors.New("keeping the keys of checkpoints: the namespace of their Secret must be set")
	}
	if options.Grace == 0 {
		options.Grace = DefaultGrace
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Keys{
		client: live, options: options, newKey: pulumi.NewKey, readKey: pulumi.ReadKey,
		derived: map[string]*pulumi.Key{},
	}, nil
}

// Current returns the key to encrypt with. It creates the first key; if several managers do so at once, one wins and
// all return its key.
func (k *Keys) Current(ctx context.Context) (*pulumi.Key, error) {
	_, ring, err := k.read(ctx)
	if apierrors.IsNotFound(err) {
		ring, err = k.first(ctx)
	}
	if err != nil {
		return nil, err
	}
	return k.derive(ctx, ring.current())
}

// For returns the key with a salt, such as pulumi.SaltOf returns for a checkpoint. It returns ErrUnknown if there is
// none.
func (k *Keys) For(ctx context.Context, salt string) (*pulumi.Key, error) {
	k.mu.Lock()
	known, ok := k.derived[salt]
	k.mu.Unlock()
	if ok {
		return known, nil
	}
	_, ring, err := k.read(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	one, found := ring.find(salt)
	if !found {
		return nil, fmt.Errorf("finding the key %s of a checkpoint in Secret %s: %w; put it back from a backup",
			IDOf(salt), k.name(), ErrUnknown)
	}
	return k.derive(ctx, one)
}

// List returns the public parts of the keys, the current one first.
func (k *Keys) List(ctx context.Context) ([]Entry, error) {
	_, ring, err := k.read(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return ring.entries(), nil
}

// Rotate creates a key and makes it current. Older keys stay for the checkpoints that they encrypted.
func (k *Keys) Rotate(ctx context.Context) (Entry, error) {
	if _, _, err := k.read(ctx); apierrors.IsNotFound(err) {
		ring, err := k.first(ctx)
		if err != nil {
			return Entry{}, err
		}
		return ring.current().Entry, nil
	}
	fresh, err := k.makeKey(ctx)
	if err != nil {
		return Entry{}, err
	}
	var next keyring
	err = k.change(ctx, func(ring keyring) keyring {
		next = ring.with(fresh, k.now())
		return next
	})
	if err != nil {
		return Entry{}, fmt.Errorf("adding a key to Secret %s: %w", k.name(), err)
	}
	return next.current().Entry, nil
}

// Prune removes keys that are not current, whose salts are not in use, and that were replaced before the grace period,
// and returns them. Call [Uses] first to find the salts in use.
func (k *Keys) Prune(ctx context.Context, inUse []string) ([]Entry, error) {
	var removed keyring
	err := k.change(ctx, func(ring keyring) keyring {
		var kept keyring
		kept, removed = ring.spare(inUse, k.options.Clock.Now().Add(-k.options.Grace))
		return kept
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("removing keys from Secret %s: %w", k.name(), err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range removed {
		delete(k.derived, one.Salt)
	}
	return removed.entries(), nil
}

// Grace returns how long a replaced key is kept even if unused.
func (k *Keys) Grace() time.Duration { return k.options.Grace }

func (k *Keys) name() types.NamespacedName {
	return types.NamespacedName{Namespace: k.options.Namespace, Name: SecretName}
}

// now returns whole seconds, which are easier to read.
func (k *Keys) now() time.Time { return k.options.Clock.Now().UTC().Truncate(time.Second) }

// read returns the Secret and its keys. It returns the API server's "not found" unchanged.
func (k *Keys) read(ctx context.Context) (*corev1.Secret, keyring, error) {
	secret := &corev1.Secret{}
	if err := k.client.Get(ctx, k.name(), secret); err != nil {
		return nil, nil, fmt.Errorf("reading the keys of checkpoints: %w", err)
	}
	ring, err := readKeyring(secret.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the keys of checkpoints in Secret %s: %w; put it back from a backup, or "+
			"remove it where no checkpoint is left", k.name(), err)
	}
	return secret, ring, nil
}

// first creates the Secret with a key, or reads the Secret that another manager has just created.
func (k *Keys) first(ctx context.Context) (keyring, error) {
	fresh, err := k.makeKey(ctx)
	if err != nil {
		return nil, err
	}
	ring := keyring(nil).with(fresh, k.now())
	err = k.create(ctx, ring)
	if apierrors.IsAlreadyExists(err) {
		_, ring, err = k.read(ctx)
		return ring, err
	}
	if err != nil {
		return nil, fmt.Errorf("making Secret %s with the key of checkpoints: %w", k.name(), err)
	}
	return ring, nil
}

// change writes the keys that edit returns. It retries with the latest Secret after a conflict.
func (k *Keys) change(ctx context.Context, edit func(keyring) keyring) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		secret, ring, err := k.read(ctx)
		if err != nil {
			return err
		}
		next := edit(ring)
		if len(next) == len(ring) {
			return nil
		}
		if err := next.write(secret); err != nil {
			return err
		}
		return k.client.Update(ctx, secret)
	})
}

func (k *Keys) makeKey(ctx context.Context) (stored, error) {
	key, err := k.newKey(ctx)
	if err != nil {
		return stored{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.derived[key.Salt()] = key
	return stored{Entry: Entry{ID: IDOf(key.Salt()), Salt: key.Salt()}, passphrase: key.Passphrase()}, nil
}

// derive returns a stored key. Concurrent calls derive it once.
func (k *Keys) derive(ctx context.Context, one stored) (*pulumi.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.derived[one.Salt]; ok {
		return known, nil
	}
	key, err := k.readKey(ctx, one.passphrase, one.Salt)
	if err != nil {
		return nil, fmt.Errorf("reading the key %s in Secret %s: %w; put it back from a backup", one.ID, k.name(), err)
	}
	k.derived[one.Salt] = key
	return key, nil
}
