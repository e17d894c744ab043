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
	// SecretType is its type, so that nothing else takes it for its own.
	SecretType corev1.SecretType = "machine-iac.io/pulumi-keys"
	// DefaultGrace is the default of Options.Grace.
	DefaultGrace = 24 * time.Hour
)

// ErrUnknown says that the Secret has no such key.
var ErrUnknown = errors.New("it is not among the keys of this cluster")

// Options are what Keys work with.
type Options struct {
	// Namespace of the Secret: the manager's own.
	Namespace string
	// Grace is how long a key that was replaced is kept whatever uses it: a run that began with it still writes with it. Zero means
	// DefaultGrace.
	Grace time.Duration
	// Clock provides the time; nil means the machine's.
	Clock clock.PassiveClock
}

// Keys are the keys of a cluster. They may be used at once by many.
type Keys struct {
	client  client.Client
	options Options

	// newKey and readKey are those of package pulumi; they take a good part of a second.
	newKey  func(ctx context.Context) (*pulumi.Key, error)
	readKey func(ctx context.Context, passphrase, salt string) (*pulumi.Key, error)

	mu sync.Mutex
	// derived are keys by their salts.
	derived map[string]*pulumi.Key
}

// New returns the keys in the Secret of a namespace. The client must read from the API server and not from a cache: a key that was made a
// moment ago must not be made again. It needs get, create and update of Secrets there.
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
		client: live, options: options, newKey: pulumi.NewKey, readKey: pulumi.ReadKey, derived: map[string]*pulumi.Key{},
	}, nil
}

// Current returns the key to encrypt with. Where there is none it makes the first; of several managers that do so at once one wins, and all
// return its key.
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

// For returns the key with a salt, as pulumi.SaltOf returns that of a checkpoint. It is ErrUnknown where there is none.
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

// List returns what may be shown of the keys, the current one first; none where there is no Secret.
func (k *Keys) List(ctx context.Context) ([]Entry, error) {
	_, ring, err := k.read(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return ring.entries(), nil
}

// Rotate makes a key and makes it the current one. The older ones stay, for the checkpoints that were encrypted with them.
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

// Prune removes the keys that are not current, whose salts are not in use, and that were replaced longer ago than the grace. It returns
// those that it removed. Read what is in use before, as [Uses] does.
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

// Grace is how long a key that was replaced is kept whatever uses it.
func (k *Keys) Grace() time.Duration { return k.options.Grace }

func (k *Keys) name() types.NamespacedName {
	return types.NamespacedName{Namespace: k.options.Namespace, Name: SecretName}
}

// now has whole seconds: nobody needs more, and it reads better.
func (k *Keys) now() time.Time { return k.options.Clock.Now().UTC().Truncate(time.Second) }

// read returns the Secret as it is. What the API server says that is not there is passed on as it is.
func (k *Keys) read(ctx context.Context) (*corev1.Secret, keyring, error) {
	secret := &corev1.Secret{}
	if err := k.client.Get(ctx, k.name(), secret); err != nil {
		return nil, nil, fmt.Errorf("reading the keys of checkpoints: %w", err)
	}
	ring, err := readKeyring(secret.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the keys of checkpoints in Secret %s: %w; put it back from a backup, or remove it where no checkpoint is left", k.name(), err)
	}
	return secret, ring, nil
}

// first makes the Secret with a key, or reads the one that somebody else has made meanwhile.
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

// change writes the keys that edit returns, on what is there when it is written.
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

// derive returns the key of what the Secret has. Of two that derive it at once one waits for the other.
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
