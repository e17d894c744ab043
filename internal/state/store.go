package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state/encryption"
	"github.com/machine-iac/machine-iac-operator/internal/state/layout"
	"github.com/machine-iac/machine-iac-operator/internal/state/preload"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	defaultVersions    = 3
	defaultChunkBytes  = 960 << 10
	defaultInlineBytes = 256 << 10
	defaultPatience    = 2 * time.Minute
	listPage           = 500
)

// Options of a Store; the zero value is a good one.
type Options struct {
	// Clock for time stamps and waits; the system's when nil.
	Clock clock.Clock
	// Versions is how many versions are kept besides the current one. 3 when zero, none when negative.
	Versions int
	// ChunkBytes is the most bytes of a compressed state in one Secret. 960 KiB when zero, 1 MiB at most.
	ChunkBytes int
	// InlineBytes is the most bytes that a head may have together with earlier versions; versions beyond it go into
	// Secrets of their own. 256 KiB when zero, none of them in the head when negative.
	InlineBytes int
	// Patience is how long a call whose context has no deadline retries an API server that does not respond; 2 minutes
	// when zero.
	Patience time.Duration
	// Keys encrypt what is stored, and decrypt what was encrypted. Without any, states are stored as they are.
	Keys *encryption.Keys
	// Logger gets what no caller sees; nothing when unset.
	Logger logr.Logger
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Versions == 0 {
		o.Versions = defaultVersions
	}
	if o.ChunkBytes <= 0 {
		o.ChunkBytes = defaultChunkBytes
	}
	o.ChunkBytes = min(o.ChunkBytes, secretLimit)
	if o.InlineBytes == 0 {
		o.InlineBytes = defaultInlineBytes
	}
	o.InlineBytes = min(o.InlineBytes, o.ChunkBytes)
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	return o
}

func (o Options) layout() layout.Limits {
	return layout.Limits{Versions: max(o.Versions, 0), Chunk: o.ChunkBytes, Inline: o.InlineBytes}
}

// MaxSize is how large a state may be, as JSON; a larger one is not stored.
const MaxSize = layout.MaxUnpacked

// Store reads states from Secrets and opens sessions that write them. It is safe for concurrent use.
type Store struct {
	client  client.Client
	options Options
	codec   layout.Codec
	preload *preload.Secrets
	// versions are those of the heads in the namespace of Preload.
	versions *preload.Versions
}

// New returns a Store. The client must read the API server itself: with a cached one, a state could be decided upon that
// is no longer true.
func New(live client.Client, options Options) *Store {
	return &Store{client: live, options: options.withDefaults(), codec: layout.Codec{Keys: options.Keys}}
}

// Preload has the states of a namespace read together when this process begins to lead, for the first Get of each; whatever takes the lock reads the API
// server. Call it before the Store is used, and add what it returns to the manager.
func (s *Store) Preload(namespace string) *preload.Secrets {
	heads := preload.Options{
		Client: s.client, Namespace: namespace, Labels: map[string]string{labelState: "true", LabelRole: RoleHead}, Clock: s.options.Clock, Logger: s.options.Logger,
	}
	s.preload, s.versions = preload.New(heads), preload.NewVersions(heads)
	return s.preload
}

// Unchanged reports whether a state in the namespace of Preload has the resource version that its Snapshot had, as a list of all states says that is ten seconds
// old at most. It is false where that cannot be said.
func (s *Store) Unchanged(ctx context.Context, key Key, version string) bool {
	now, err := s.versions.Of(ctx, key.object())
	return err == nil && version != "" && now == version
}

// preloaded returns what was read ahead of a state; nil for nothing. What cannot be read may have been changed just then.
func (s *Store) preloaded(ctx context.Context, key Key) *view {
	head := s.preload.Take(ctx, key.object())
	if head == nil {
		return nil
	}
	seen, err := s.resolve(ctx, key, head)
	if err != nil {
		return nil
	}
	return seen
}

// Snapshot is a state as it was at one moment. Its maps and bytes are shared: read them, never change them.
type Snapshot struct {
	// Key of the state.
	Key Key
	// ReadAhead says that it was read with all others when this process began to lead (Preload).
	ReadAhead bool
	// Raw is the state as JSON, nil before the first was stored.
	Raw []byte
	// Serial of the state, 0 before the first.
	Serial uint64
	// Lineage of the state, empty before the first.
	Lineage string
	// Meta are the head's annotations under Prefix, keyed without it; those of the store itself are left out.
	Meta map[string]string
	// Attachments are what is kept with the state.
	Attachments Attachments
	// Lock that is held, nil when free.
	Lock *Lock
	// Epoch of the last leader that wrote the head, zero when none did.
	Epoch Epoch
	// Labels of the head.
	Labels map[string]string
	// Created is when the head was made.
	Created time.Time
	// ResourceVersion of the head.
	ResourceVersion string
	// Deleting says that somebody deleted the head, or its namespace. Its finalizer keeps it until Session.Delete.
	Deleting bool
}

// State parses Raw. Before the first state was stored it returns an empty one.
func (s *Snapshot) State() (*statefile.State, error) {
	if s.Raw == nil {
		return &statefile.State{}, nil
	}
	return statefile.Parse(s.Raw)
}

// Head is what a state's head Secret says without the state itself.
type Head struct {
	// Key of the state.
	Key Key
	// Stored says that there is a state; the head alone is made when a run begins.
	Stored bool
	// Serial and Lineage of the state.
	Serial  uint64
	Lineage string
	// Managed counts the managed resources of the state.
	Managed int
	// Size of the state as JSON, in bytes.
	Size int
	// Written is when the state was stored.
	Written time.Time
	// Meta as in Snapshot.
	Meta map[string]string
	// Lock that is held, nil when free.
	Lock *Lock
	// Epoch of the last leader that wrote the head, zero when none did.
	Epoch Epoch
	// Labels of the head.
	Labels map[string]string
	// Created is when the head was made.
	Created time.Time
	// Deleting as in Snapshot.
	Deleting bool
	// Problem says why lock, epoch or record cannot be read; what depends on them is then missing.
	Problem error
}

// Get reads a state. It returns ErrNotFound when there is no head, a *FormatError when a newer operator
// wrote it, an *EncryptedError when there is no key for it, and a *CorruptError when what is there is no state.
func (s *Store) Get(ctx context.Context, key Key) (*Snapshot, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if seen := s.preloaded(ctx, key); seen != nil {
		snapshot, err := s.snapshot(key, seen)
		if err != nil {
			return nil, err
		}
		snapshot.ReadAhead = true
		return snapshot, nil
	}
	seen, err := s.read(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("getting state %s: %w", key, err)
	}
	return s.snapshot(key, seen)
}

// List reads the heads in a namespace, of all namespaces when it is empty. It reads metadata only.
func (s *Store) List(ctx context.Context, namespace string) ([]Head, error) {
	var heads []Head
	err := s.list(ctx, namespace, client.MatchingLabels{labelState: "true", LabelRole: RoleHead}, func(object *metav1.ObjectMeta) {
		heads = append(heads, newHead(object))
	})
	if err != nil {
		return nil, fmt.Errorf("listing states: %w", err)
	}
	return heads, nil
}

// list calls found for the metadata of each Secret with the labels.
func (s *Store) list(ctx context.Context, namespace string, labels client.MatchingLabels, found func(*metav1.ObjectMeta)) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	options := &client.ListOptions{Namespace: namespace, Limit: listPage}
	labels.ApplyToList(options)
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if _, err := s.do(ctx, "listing states", func(ctx context.Context) error {
			return s.client.List(ctx, page, options)
		}); err != nil {
			return err
		}
		for i := range page.Items {
			found(&page.Items[i].ObjectMeta)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

func newHead(object *metav1.ObjectMeta) Head {
	head := Head{
		Key:      Key{Namespace: object.Namespace, Name: object.Name},
		Meta:     metaOf(object.Annotations),
		Labels:   object.Labels,
		Created:  object.CreationTimestamp.Time,
		Deleting: object.DeletionTimestamp != nil,
	}
	lock, lockErr := decodeLock(object.Annotations)
	epoch, epochErr := decodeEpoch(object.Annotations)
	known, recordErr := layout.DecodeIndex(object.Annotations)
	head.Lock, head.Epoch, head.Problem = lock, epoch, errors.Join(lockErr, epochErr, recordErr)
	if known.Current != nil {
		head.Stored, head.Serial, head.Lineage, head.Managed = true, known.Current.Serial, known.Current.Lineage, known.Current.Managed
		head.Size, head.Written = known.Current.Size, known.Current.Written
	}
	return head
}

// Version describes one stored version of a state.
type Version struct {
	// Serial of the version.
	Serial uint64
	// Lineage of the version.
	Lineage string
	// Current says that it is the state itself.
	Current bool
	// Size of the state as JSON, in bytes.
	Size int
	// Managed counts the managed resources.
	Managed int
	// Written is when it was stored.
	Written time.Time
}

// Versions lists the current state and the versions kept before it, newest first.
func (s *Store) Versions(ctx context.Context, key Key) ([]Version, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	head, err := s.head(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("listing versions of state %s: %w", key, err)
	}
	known, err := layout.DecodeIndex(head.Annotations)
	if err != nil {
		return nil, fmt.Errorf("listing versions of state %s: %w", key, err)
	}
	var versions []Version
	if known.Current != nil {
		versions = append(versions, newVersion(*known.Current, true))
	}
	for _, e := range known.Versions {
		versions = append(versions, newVersion(e, false))
	}
	return versions, nil
}

func newVersion(e layout.Entry, current bool) Version {
	return Version{
		Serial: e.Serial, Lineage: e.Lineage, Current: current, Size: e.Size, Managed: e.Managed, Written: e.Written,
	}
}

// Version reads one version as JSON, the newest of that serial. It returns ErrNotFound when it is not kept.
func (s *Store) Version(ctx context.Context, key Key, serial uint64) ([]byte, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	raw, err := s.readVersion(ctx, key, serial)
	if err != nil {
		return nil, fmt.Errorf("reading version %d of state %s: %w", serial, key, err)
	}
	return raw, nil
}

func (s *Store) head(ctx context.Context, key Key) (*corev1.Secret, error) {
	if err := key.validate(); err != nil {
		return nil, err
	}
	return s.secret(ctx, key.object())
}

// secret reads one Secret, ErrNotFound when there is none.
func (s *Store) secret(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	_, err := s.do(ctx, "reading Secret "+name.String(), func(ctx context.Context) error {
		return s.client.Get(ctx, name, found)
	})
	if err != nil {
		return nil, notFound(err)
	}
	return found, nil
}
