// Package installation holds the identity of one installation of the operator: a UID that its instances are tagged with, and a key that
// authenticates what it writes on objects that others may write too.
package installation

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// SecretName is the name of the Secret that keeps the identity, in the namespace of the Machines.
	SecretName = "machine-iac-installation"
	// CodeKey is the key, in a ConfigMap, of the code that Sign has returned for what the ConfigMap has.
	CodeKey = "code"

	dataUID = "uid"
	dataKey = "key"

	keyBytes = 32
	// context separates these codes from any others made with the same key.
	codeContext = "machine-iac.io/installation/v1"
)

// Installation is the identity of one installation.
type Installation struct {
	uid   types.UID
	key   []byte
	since time.Time
}

// New returns an installation with a UID and a key, which nothing has stored.
func New(uid types.UID, key []byte) *Installation { return &Installation{uid: uid, key: key} }

// Generate returns a new installation that nothing has stored.
func Generate() *Installation {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	return New(uuid.NewUUID(), key)
}

// Ensure reads the identity from its Secret, and creates the Secret on the first start. c must not read from a cache. In a namespace that is being
// deleted, where nothing can be created any more, a new identity lasts as long as the process.
func Ensure(ctx context.Context, c client.Client, namespace string) (*Installation, error) {
	found, err := Read(ctx, c, namespace)
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	made := Generate()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName},
		Data:       map[string][]byte{dataUID: []byte(made.uid), dataKey: made.key},
	}
	err = c.Create(ctx, secret)
	switch {
	case err == nil, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		made.since = secret.CreationTimestamp.Time
		return made, nil
	case apierrors.IsAlreadyExists(err): // another replica was faster
		return Read(ctx, c, namespace)
	}
	return nil, fmt.Errorf("storing the identity of this installation: %w", err)
}

// Read reads the identity from its Secret. It returns a NotFound where no operator has made one.
func Read(ctx context.Context, c client.Reader, namespace string) (*Installation, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: SecretName}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the identity of this installation: %w", err)
	}
	if len(secret.Data[dataUID]) == 0 || len(secret.Data[dataKey]) < keyBytes {
		return nil, fmt.Errorf("reading the identity of this installation: Secret %s needs the keys %s and %s (%d bytes or more); "+
			"restore it from a backup, or delete it and restart the manager to create a new identity", key, dataUID, dataKey, keyBytes)
	}
	return &Installation{uid: types.UID(secret.Data[dataUID]), key: secret.Data[dataKey], since: secret.CreationTimestamp.Time}, nil
}

// Since returns when the identity was stored, by the clock of the API server; zero if it is not.
func (i *Installation) Since() time.Time { return i.since }

// UID returns the UID that instances of this installation are tagged with.
func (i *Installation) UID() types.UID { return i.uid }

// Sign returns a code that authenticates fields for a purpose. It is valid for exactly these fields in this order.
func (i *Installation) Sign(purpose string, fields ...string) string {
	return base64.RawURLEncoding.EncodeToString(i.code(purpose, fields))
}

// Derive returns 32 secret bytes for a purpose and fields, the same each time. Keep them as secret as the key, and use
// no purpose that Sign has.
func (i *Installation) Derive(purpose string, fields ...string) []byte {
	return i.code(purpose, fields)
}

// Signed reports whether Sign of this installation returned code for these fields.
func (i *Installation) Signed(code, purpose string, fields ...string) bool {
	given, err := base64.RawURLEncoding.DecodeString(code)
	return err == nil && hmac.Equal(given, i.code(purpose, fields))
}

func (i *Installation) code(purpose string, fields []string) []byte {
	mac := hmac.New(sha256.New, i.key)
	for _, field := range append([]string{codeContext, purpose}, fields...) {
		// With its length before it, no field can run into the next. A hash never fails to write.
		_, _ = mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		_, _ = mac.Write([]byte(field))
	}
	return mac.Sum(nil)
}
