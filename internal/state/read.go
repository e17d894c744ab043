package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// readAttempts is how many times a read restarts because the head changed.
const readAttempts = 5

// view is a head and the state that it commits.
type view struct {
	head   *corev1.Secret
	index  headIndex
	raw    []byte
	packed []byte
}

// read returns a complete state or an error, never a mix of versions. If the head changes
// meanwhile, it starts over.
func (s *Store) read(ctx context.Context, key Key) (*view, error) {
	var last string
	for attempt := 1; ; attempt++ {
		head, err := s.head(ctx, key)
		if err != nil {
			return nil, err
		}
		seen, err := s.resolve(ctx, key, head)
		corrupt, ok := errors.AsType[*CorruptError](err)
		if !ok {
			return seen, err
		}
		if head.ResourceVersion == last || attempt == readAttempts {
			return nil, corrupt
		}
		last = head.ResourceVersion
	}
}

// resolve reads the state that a head commits.
func (s *Store) resolve(ctx context.Context, key Key, head *corev1.Secret) (*view, error) {
	known, err := decodeIndex(head.Annotations)
	if _, newer := errors.AsType[*FormatError](err); newer {
		return nil, err
	}
	if err != nil {
		return nil, &CorruptError{Key: key, Detail: err.Error()}
	}
	seen := &view{head: head, index: known}
	first, stored := head.Data[dataState]
	switch {
	case !stored && known.Current == nil:
		return seen, nil
	case known.Current == nil || stored && !known.Current.Begins(first):
		return s.adopt(ctx, key, seen)
	}
	seen.packed, err = s.payload(ctx, key, head, *known.Current, dataState)
	if err != nil {
		return nil, err
	}
	if seen.raw, err = s.unpack(key, seen.packed); err != nil {
		return nil, err
	}
	return seen, nil
}

// payload reads the packed bytes of an entry from its copy or from the head's data. It falls back
// to the parts if the copy is gone.
func (s *Store) payload(ctx context.Context, key Key, head *corev1.Secret, e indexEntry,
	dataKey string) ([]byte, error) {
	if e.Blob == nil {
		if payload := head.Data[dataKey]; checksum(payload) == e.SHA256 {
			return payload, nil
		}
		return nil, &CorruptError{Key: key, Detail: fmt.Sprintf("checksum mismatch of data key %q", dataKey)}
	}
	names := make([]string, e.Blob.Chunks)
	for i := range names {
		names[i] = e.Blob.Chunk(i)
	}
	payload, err := s.join(ctx, key, nil, names)
	if err == nil && checksum(payload) == e.SHA256 {
		return payload, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if dataKey != dataState {
		return nil, &CorruptError{Key: key, Detail: "its copy " + e.Blob.Name + " is damaged or gone"}
	}
	for i := range names {
		names[i] = key.part(i)
	}
	payload, err = s.join(ctx, key, head.Data[dataState], names[1:])
	if err == nil && checksum(payload) == e.SHA256 {
		return payload, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	return nil, &CorruptError{Key: key, Detail: "both its parts and its copy " + e.Blob.Name + " are damaged or gone"}
}

// join appends the contents of Secrets to first.
func (s *Store) join(ctx context.Context, key Key, first []byte, names []string) ([]byte, error) {
	payload := bytes.Clone(first)
	for _, name := range names {
		secret, err := s.secret(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name})
		if err != nil {
			return nil, err
		}
		payload = append(payload, secret.Data[dataState]...)
	}
	return payload, nil
}

// adopt reads a state that this store did not write, such as one that a person copied in with
// Terraform's or OpenTofu's own backend. The compression's checksum shows whether its parts belong
// together.
func (s *Store) adopt(ctx context.Context, key Key, seen *view) (*view, error) {
	payload := seen.head.Data[dataState]
	parts := 0
	raw, err := unpackContent(payload)
	if err != nil { // a first part is no whole
		if payload, parts, err = s.foreignParts(ctx, key, payload); err != nil {
			return nil, err
		}
		raw, err = unpackContent(payload)
	}
	if err != nil {
		return nil, &CorruptError{Key: key, Detail: err.Error()}
	}
	found, err := s.codec.Decrypt(raw)
	if err != nil {
		return nil, unreadable(key, err)
	}
	parsed, err := statefile.Parse(found.Raw)
	if err != nil {
		return nil, &CorruptError{Key: key, Detail: err.Error()}
	}
	if before := seen.index.Current; before != nil && before.Lineage != parsed.Lineage {
		return nil, &CorruptError{Key: key,
			Detail: fmt.Sprintf("its lineage is %q, but that of the state before it is %q: it describes other "+
				"infrastructure, such as another Machine's",
				parsed.Lineage, before.Lineage)}
	}
	current := newIndexEntry(incomingState{State: parsed, Raw: found.Raw, Packed: payload, Encrypted: found.Encrypted,
		At: s.options.Clock.Now()})
	current.Parts = parts
	seen.raw, seen.packed = found.Raw, payload
	seen.index = seen.index.Adopted(current)
	return seen, nil
}

// foreignParts appends all existing parts to first.
func (s *Store) foreignParts(ctx context.Context, key Key, first []byte) (payload []byte, parts int, err error) {
	payload = bytes.Clone(first)
	for parts < MaxChunks-1 {
		secret, err := s.secret(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.part(parts + 1)})
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		payload = append(payload, secret.Data[dataState]...)
		parts++
	}
	return payload, parts, nil
}

func (s *Store) readVersion(ctx context.Context, key Key, serial uint64) ([]byte, error) {
	seen, err := s.read(ctx, key)
	if err != nil {
		_, corrupt := errors.AsType[*CorruptError](err)
		if _, lost := errors.AsType[*EncryptedError](err); !corrupt && !lost {
			return nil, err
		}
		// Earlier versions are needed most when the current state cannot be read.
		if seen, err = s.headOnly(ctx, key); err != nil {
			return nil, err
		}
	}
	if seen.raw != nil && seen.index.Current.Serial == serial {
		return seen.raw, nil
	}
	for _, e := range seen.index.Versions {
		if e.Serial != serial {
			continue
		}
		payload, err := s.payload(ctx, key, seen.head, e, e.Key)
		if err != nil {
			return nil, err
		}
		return s.unpack(key, payload)
	}
	return nil, ErrNotFound
}

func (s *Store) headOnly(ctx context.Context, key Key) (*view, error) {
	head, err := s.head(ctx, key)
	if err != nil {
		return nil, err
	}
	known, err := decodeIndex(head.Annotations)
	return &view{head: head, index: known}, err
}

func (s *Store) snapshot(key Key, v *view) (*Snapshot, error) {
	lock, err := decodeLock(v.head.Annotations)
	if err != nil {
		return nil, &CorruptError{Key: key, Detail: err.Error()}
	}
	epoch, err := decodeEpoch(v.head.Annotations)
	if err != nil {
		return nil, &CorruptError{Key: key, Detail: err.Error()}
	}
	attached, err := s.opened(key, v)
	if err != nil {
		return nil, err
	}
	snapshot := &Snapshot{
		Key:             key,
		Raw:             v.raw,
		Meta:            metaOf(v.head.Annotations),
		Attachments:     attached,
		Lock:            lock,
		Epoch:           epoch,
		Labels:          v.head.Labels,
		Created:         v.head.CreationTimestamp.Time,
		ResourceVersion: v.head.ResourceVersion,
		Deleting:        v.head.DeletionTimestamp != nil,
	}
	if v.raw != nil {
		snapshot.Serial, snapshot.Lineage = v.index.Current.Serial, v.index.Current.Lineage
	}
	return snapshot, nil
}

func metaOf(annotations map[string]string) map[string]string {
	meta := map[string]string{}
	for key, value := range annotations {
		if name, ok := strings.CutPrefix(key, Prefix); ok && !reserved(name) {
			meta[name] = value
		}
	}
	return meta
}

// reserved reports whether the store itself uses a meta key.
func reserved(name string) bool {
	switch Prefix + name {
	case annotationLock, annotationRecord, annotationSerial, annotationEpoch:
		return true
	}
	return false
}

func notFound(err error) error {
	if apierrors.IsNotFound(err) {
		return ErrNotFound
	}
	return err
}
