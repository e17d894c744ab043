package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	orphanInfix = "-orphan-"
	// The annotations of an object are limited to 256 KiB in total. The description of an orphan stays
	// far below that.
	maxOrphanReason  = 4 << 10
	maxOrphanMissing = 200
	orphanDigestSize = 16
)

// OrphanOptions describe an orphaned state.
type OrphanOptions struct {
	// Reason that it is kept, for people.
	Reason string
	// Missing are the resources that no other state contains, as returned by Compare. The first 200
	// are stored.
	Missing []statefile.ResourceID
	// Machine is the name of the Machine that the state was written for.
	Machine string
	// MachineUID is that Machine's UID.
	MachineUID types.UID
	// Attachments to keep with the state, such as the inputs needed to destroy it.
	Attachments Attachments
	// Since is when it was first kept, or now if zero.
	Since time.Time
}

// Orphan is a state that could not be saved as its Machine's and that contains resources no other
// state contains.
type Orphan struct {
	// Namespace and Name of the Secret.
	Namespace, Name string
	// Key of the state that it should have been saved as.
	Key Key
	// Machine, MachineUID, Why and Lacking as in OrphanOptions.
	Machine    string
	MachineUID types.UID
	Reason     string
	Missing    []statefile.ResourceID
	// Serial and Lineage of the state, or zero if it cannot be parsed.
	Serial  uint64
	Lineage string
	// Since is when it was first kept.
	Since time.Time
	// Deleting means that the Secret or its namespace is being deleted; the finalizer keeps it.
	Deleting bool
	// Problem is why its annotation cannot be read; fields that depend on it are then empty.
	Problem error
}

// orphanInfo is the content of an orphan's annotation.
type orphanInfo struct {
	State   string                 `json:"state"`
	Reason  string                 `json:"why"`
	Since   time.Time              `json:"since"`
	Missing []statefile.ResourceID `json:"resources,omitempty"`
	Serial  uint64                 `json:"serial,omitempty"`
	Lineage string                 `json:"lineage,omitempty"`
	SHA256  string                 `json:"sha256"`
	Chunks  int                    `json:"chunks"`
}

// SaveOrphan stores a state that could not be saved in Secrets of its own. Their names derive from
// key and content, so saving the same state again is a no-op. It needs no lock, and accepts states
// that statefile.Parse rejects.
func (s *Store) SaveOrphan(ctx context.Context, key Key, raw []byte, options OrphanOptions) (*Orphan, error) {
	if err := key.validate(); err != nil {
		return nil, fmt.Errorf("saving an orphaned state: %w", err)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	secrets, err := s.orphanSecrets(key, raw, options)
	if err != nil {
		return nil, fmt.Errorf("saving an orphaned state of %s: %w", key, err)
	}
	kept, err := s.secret(ctx, client.ObjectKeyFromObject(secrets[0]))
	// the first Secret last: if it exists, the others do too
	for i := len(secrets) - 1; i >= 0 && errors.Is(err, ErrNotFound); i-- {
		if err := s.createOrphan(ctx, secrets[i]); err != nil {
			return nil, fmt.Errorf("saving an orphaned state of %s: %w", key, err)
		}
		if i == 0 {
			kept, err = s.secret(ctx, client.ObjectKeyFromObject(secrets[0]))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("saving an orphaned state of %s: %w", key, err)
	}
	return newOrphan(&kept.ObjectMeta), nil
}

// createOrphan creates a Secret of an orphan. It replaces a different one left by an interrupted
// attempt: encrypting again gives different bytes.
func (s *Store) createOrphan(ctx context.Context, secret *corev1.Secret) error {
	_, _, err := s.write(ctx, "creating Secret "+secret.Name, secret, s.create)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there, err := s.secret(ctx, client.ObjectKeyFromObject(secret))
	if err == nil && bytes.Equal(there.Data[dataState], secret.Data[dataState]) {
		return nil
	}
	if err == nil {
		err = s.removeProtected(ctx, client.ObjectKeyFromObject(secret))
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	_, _, err = s.write(ctx, "creating Secret "+secret.Name, secret, s.create)
	return err
}

func (s *Store) orphanSecrets(key Key, raw []byte, options OrphanOptions) ([]*corev1.Secret, error) {
	record := orphanInfo{
		State: key.Name, Reason: options.Reason[:min(len(options.Reason), maxOrphanReason)], Since: options.Since.UTC(),
		Missing: options.Missing[:min(len(options.Missing), maxOrphanMissing)], SHA256: s.options.Keys.Digest(raw),
	}
	if options.Since.IsZero() {
		record.Since = s.options.Clock.Now().UTC()
	}
	var label sealLabel
	if parsed, err := statefile.Parse(raw); err == nil {
		record.Serial, record.Lineage = parsed.Serial, parsed.Lineage
		label = sealLabel{Serial: &record.Serial, Lineage: record.Lineage}
	}
	packed, _, err := s.codec.Pack(raw, label)
	if err != nil {
		return nil, err
	}
	chunks := splitChunks(packed, s.options.ChunkBytes)
	record.Chunks = len(chunks)
	text, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encoding the annotation: %w", err)
	}
	name := key.Name + orphanInfix + record.SHA256[:orphanDigestSize]
	var secrets []*corev1.Secret
	for i, chunk := range chunks {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: orphanChunk(name, i), Finalizers: []string{Finalizer},
				Labels:      map[string]string{LabelRole: RoleOrphanPart, LabelMachineUID: string(options.MachineUID)},
				Annotations: map[string]string{annotationEncoding: encodingGzip, AnnotationMachine: options.Machine},
			},
			Type: corev1.SecretTypeOpaque, Immutable: ptr.To(true), Data: map[string][]byte{dataState: chunk},
		}
		secrets = append(secrets, secret)
	}
	secrets[0].Labels[LabelRole] = RoleOrphan
	secrets[0].Annotations[annotationOrphan] = string(text)
	attached, _, err := s.seal(key, nil, options.Attachments, false)
	if err != nil {
		return nil, err
	}
	attached.apply(secrets[0])
	return secrets, nil
}

func orphanChunk(name string, index int) string {
	if index == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(index)
}

func decodeOrphan(annotations map[string]string) (orphanInfo, error) {
	var record orphanInfo
	if err := json.Unmarshal([]byte(annotations[annotationOrphan]), &record); err != nil {
		return orphanInfo{}, fmt.Errorf("reading annotation %s: %w", annotationOrphan, err)
	}
	return record, nil
}

func newOrphan(object *metav1.ObjectMeta) *Orphan {
	record, err := decodeOrphan(object.Annotations)
	return &Orphan{
		Namespace: object.Namespace, Name: object.Name, Key: Key{Namespace: object.Namespace, Name: record.State},
		Machine: object.Annotations[AnnotationMachine], MachineUID: types.UID(object.Labels[LabelMachineUID]),
		Reason: record.Reason, Missing: record.Missing, Serial: record.Serial, Lineage: record.Lineage,
		Since:    record.Since,
		Deleting: object.DeletionTimestamp != nil, Problem: err,
	}
}

// Orphans lists the orphaned states of a namespace, or of all namespaces if it is empty. It reads
// metadata only.
func (s *Store) Orphans(ctx context.Context, namespace string) ([]Orphan, error) {
	var orphans []Orphan
	err := s.list(ctx, namespace, client.MatchingLabels{LabelRole: RoleOrphan}, func(object *metav1.ObjectMeta) {
		orphans = append(orphans, *newOrphan(object))
	})
	if err != nil {
		return nil, fmt.Errorf("listing orphaned states: %w", err)
	}
	return orphans, nil
}

// ReadOrphan returns an orphaned state and its attachments as they were saved.
func (s *Store) ReadOrphan(ctx context.Context, name types.NamespacedName) ([]byte, Attachments, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	found, attached, err := s.readOrphan(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("reading orphaned state %s: %w", name, err)
	}
	return found.Raw, attached, nil
}

func (s *Store) readOrphan(ctx context.Context, name types.NamespacedName) (storedContent, Attachments, error) {
	first, record, err := s.orphan(ctx, name)
	if err != nil {
		return storedContent{}, nil, err
	}
	names := make([]string, 0, max(record.Chunks-1, 0))
	for i := 1; i < record.Chunks; i++ {
		names = append(names, orphanChunk(name.Name, i))
	}
	key := Key{Namespace: name.Namespace, Name: name.Name}
	packed, err := s.join(ctx, key, first.Data[dataState], names)
	if err != nil {
		return storedContent{}, nil, err
	}
	found, err := s.codec.Unpack(packed)
	if err == nil && !found.Encrypted && checksum(found.Raw) != record.SHA256 { // what is encrypted proves itself
		err = errors.New("its checksum is wrong")
	}
	if err != nil {
		return storedContent{}, nil, unreadable(key, err)
	}
	attached, err := s.opened(key, &view{head: first, index: headIndex{EncryptedData: found.Encrypted}})
	return found, attached, err
}

// RewriteOrphan saves an orphaned state again, under another name, with the current keys: after a
// key was rotated, or encryption was switched on or off. It reports whether anything changed.
func (s *Store) RewriteOrphan(ctx context.Context, o Orphan) (changed bool, err error) {
	if s.options.Keys == nil {
		return false, nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	name := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	found, attached, err := s.readOrphan(ctx, name)
	if err != nil || found.Current {
		return false, err
	}
	kept, err := s.SaveOrphan(ctx, o.Key, found.Raw, OrphanOptions{
		Reason: o.Reason, Missing: o.Missing, Machine: o.Machine, MachineUID: o.MachineUID, Attachments: attached,
		Since: o.Since,
	})
	if err != nil || kept.Name == o.Name {
		return false, err
	}
	return true, s.DeleteOrphan(ctx, name)
}

// DeleteOrphan deletes an orphaned state whose resources are destroyed or saved in another state.
// It succeeds if already deleted.
func (s *Store) DeleteOrphan(ctx context.Context, name types.NamespacedName) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	_, record, err := s.orphan(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting orphaned state %s: %w", name, err)
	}
	for i := record.Chunks - 1; i >= 0; i-- {
		if err := s.removeProtected(ctx, types.NamespacedName{Namespace: name.Namespace,
			Name: orphanChunk(name.Name, i)}); err != nil {
			return fmt.Errorf("deleting orphaned state %s: %w", name, err)
		}
	}
	return nil
}

func (s *Store) orphan(ctx context.Context, name types.NamespacedName) (*corev1.Secret, orphanInfo, error) {
	first, err := s.secret(ctx, name)
	if err != nil {
		return nil, orphanInfo{}, err
	}
	if first.Labels[LabelRole] != RoleOrphan {
		return nil, orphanInfo{}, fmt.Errorf("the Secret is not an orphaned state: label %s is not %q", LabelRole,
			RoleOrphan)
	}
	record, err := decodeOrphan(first.Annotations)
	if err == nil && (record.Chunks < 1 || record.Chunks > MaxChunks) {
		err = fmt.Errorf("annotation %s says that it has %d Secrets, and a state has 1 to %d", annotationOrphan,
			record.Chunks, MaxChunks)
	}
	return first, record, err
}
