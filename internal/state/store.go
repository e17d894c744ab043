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

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	defaultVersions    = 3
	defaultChunkBytes  = 960 << 10
	defaultInlineBytes = 256 << 10
	defaultPatience    = 2 * time.Minute
	listPage           = 500
)

// Options of a Store. The zero value is usable.
type Options struct {
	// Clock for timestamps and waits; defaults to the system clock.
	Clock clock.Clock
	// Namespace has the states that Unchanged lists.
	Namespace string
	// Versions is how many earlier versions are kept. Defaults to 3; negative means none.
	Versions int
	// ChunkBytes is the maximum size of a compressed state in one Secret. Defaults to 960 KiB; at most
	// 1 MiB.
	ChunkBytes int
	// InlineBytes is the maximum size of a head including earlier versions; versions that do not fit
	// get Secrets of their own. Defaults to 256 KiB; negative keeps no versions in the head.
	InlineBytes int
	// Patience is how long a call without a deadline retries while the API server does not respond.
	// Defaults to 2 minutes.
	Patience time.Duration
	// Keys encrypt and decrypt states. Without keys, states are stored in plain text.
	Keys *Keys
	// Logger gets what callers do not see. Defaults to discarding it.
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

func (o Options) layout() layoutLimits {
	return layoutLimits{Versions: max(o.Versions, 0), Chunk: o.ChunkBytes, Inline: o.InlineBytes}
}

// MaxSize is the maximum size of a state as JSON.
const MaxSize = maxUnpacked

// Store reads states from Secrets and opens sessions that write them. It is safe for concurrent
// use.
type Store struct {
	client  client.Client
	options Options
	codec   contentCodec
	// versions are the resource versions of the heads in Options.Namespace.
	versions headVersions
}

// New returns a Store. The client must read the API server directly: decisions must not depend on a stale cache.
func New(live client.Client, options Options) *Store {
	return &Store{client: live, options: options.withDefaults(), codec: contentCodec{Keys: options.Keys}}
}

// Unchanged reports whether a state in Options.Namespace still has the resource version of its
// Snapshot. It uses a list of all states that is at most ten seconds old, and returns false if it
// cannot tell.
func (s *Store) Unchanged(ctx context.Context, key Key, version string) bool {
	if s.options.Namespace == "" || key.Namespace != s.options.Namespace {
		return false
	}
	now, err := s.versionOf(ctx, key)
	return err == nil && version != "" && now == version
}

// Snapshot is a state at one moment. Its maps and bytes are shared: do not modify them.
type Snapshot struct {
	// Key of the state.
	Key Key
	// Raw is the state as JSON, or nil if none was stored yet.
	Raw []byte
	// Serial of the state, or 0 if none was stored yet.
	Serial uint64
	// Lineage of the state, or empty if none was stored yet.
	Lineage string
	// Meta are the head's annotations under Prefix, without that prefix and without those of the store
	// itself.
	Meta map[string]string
	// Attachments are stored with the state.
	Attachments Attachments
	// Lock that is held, or nil.
	Lock *Lock
	// Epoch of the last leader that wrote the head, or zero.
	Epoch Epoch
	// Labels of the head.
	Labels map[string]string
	// Created is when the head was created.
	Created time.Time
	// ResourceVersion of the head.
	ResourceVersion string
	// Deleting means that the head or its namespace is being deleted. The finalizer keeps the head
	// until Session.Delete.
	Deleting bool
}

// State parses Raw. It returns an empty state if none was stored yet.
func (s *Snapshot) State() (*statefile.State, error) {
	if s.Raw == nil {
		return &statefile.State{}, nil
	}
	return statefile.Parse(s.Raw)
}

// Head is the metadata of a state's head Secret, without the state.
type Head struct {
	// Key of the state.
	Key Key
	// Stored means that a state exists; a run creates the head before it stores one.
	Stored bool
	// Serial and Lineage of the state.
	Serial  uint64
	Lineage string
	// Managed is the number of managed resources in the state.
	Managed int
	// Size of the state as JSON, in bytes.
	Size int
	// Written is when the state was stored.
	Written time.Time
	// Meta as in Snapshot.
	Meta map[string]string
	// Lock that is held, or nil.
	Lock *Lock
	// Epoch of the last leader that wrote the head, or zero.
	Epoch Epoch
	// Labels of the head.
	Labels map[string]string
	// Created is when the head was created.
	Created time.Time
	// Deleting as in Snapshot.
	Deleting bool
	// Problem is why the lock, epoch or record cannot be read; fields that depend on them are then
	// empty.
	Problem error
}

// Get reads a state. It returns ErrNotFound if there is no head, a *FormatError if a newer operator
// wrote it, an *EncryptedError if its key is missing, and a *CorruptError if it is not a valid
// state.
func (s *Store) Get(ctx context.Context, key Key) (*Snapshot, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	seen, err := s.read(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("getting state %s: %w", key, err)
	}
	return s.snapshot(key, seen)
}

// List reads the heads of a namespace, or of all namespaces if it is empty. It reads metadata only.
func (s *Store) List(ctx context.Context, namespace string) ([]Head, error) {
	var heads []Head
	err := s.list(ctx, namespace, client.MatchingLabels{labelState: "true", LabelRole: RoleHead},
		func(object *metav1.ObjectMeta) {
			heads = append(heads, newHead(object))
		})
	if err != nil {
		return nil, fmt.Errorf("listing states: %w", err)
	}
	return heads, nil
}

// list calls found with the metadata of each Secret that has the labels.
func (s *Store) list(ctx context.Context, namespace string, labels client.MatchingLabels,
	found func(*metav1.ObjectMeta)) error {
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
	known, recordErr := decodeIndex(object.Annotations)
	head.Lock, head.Epoch, head.Problem = lock, epoch, errors.Join(lockErr, epochErr, recordErr)
	if known.Current != nil {
		head.Stored, head.Serial, head.Lineage, head.Managed = true, known.Current.Serial, known.Current.Lineage,
			known.Current.Managed
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
	// Current means that it is the state itself.
	Current bool
	// Size of the state as JSON, in bytes.
	Size int
	// Managed is the number of managed resources.
	Managed int
	// Written is when it was stored.
	Written time.Time
}

// Versions lists the current state and its earlier versions, newest first.
func (s *Store) Versions(ctx context.Context, key Key) ([]Version, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	head, err := s.head(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("listing versions of state %s: %w", key, err)
	}
	known, err := decodeIndex(head.Annotations)
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

func newVersion(e indexEntry, current bool) Version {
	return Version{
		Serial: e.Serial, Lineage: e.Lineage, Current: current, Size: e.Size, Managed: e.Managed, Written: e.Written,
	}
}

// Version returns one version as JSON, the newest with that serial. It returns ErrNotFound if it is
// not kept.
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

// secret reads one Secret, or returns ErrNotFound.
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
