package pulumikeys

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Backup returns the keys with their passphrases, as stored in the Secret, or nil if there is none.
func (k *Keys) Backup(ctx context.Context) (map[string][]byte, error) {
	_, ring, err := k.read(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ring.data()
}

// InBackup lists the keys in a backup, without passphrases.
func InBackup(data map[string][]byte) ([]Entry, error) {
	ring, err := readKeyring(data)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of checkpoints in the backup: %w", err)
	}
	return ring.entries(), nil
}

// Restore adds the missing keys of a backup to the Secret and returns them. The Secret's current key stays current; the
// backup's becomes current only if there is no Secret.
func (k *Keys) Restore(ctx context.Context, data map[string][]byte) ([]Entry, error) {
	kept, err := readKeyring(data)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of checkpoints in the backup: %w", err)
	}
	var added keyring
	err = retry.OnError(retry.DefaultRetry,
		func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }, func() error {
			secret, ring, err := k.read(ctx)
			missing := apierrors.IsNotFound(err)
			if err != nil && !missing {
				return err
			}
			if added, err = ring.lacking(kept); err != nil || len(added) == 0 {
				return err
			}
			if missing {
				return k.create(ctx, added)
			}
			for _, one := range added {
				one.Current = false
				if one.Replaced.IsZero() {
					one.Replaced = k.now()
				}
				ring = append(ring, one)
			}
			if err := ring.write(secret); err != nil {
				return err
			}
			return k.client.Update(ctx, secret)
		})
	if err != nil {
		return nil, fmt.Errorf("adding keys to Secret %s: %w", k.name(), err)
	}
	return added.entries(), nil
}

func (k *Keys) create(ctx context.Context, ring keyring) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.options.Namespace, Name: SecretName,
			Labels: map[string]string{"app.kubernetes.io/name": "machine-iac-operator"},
		},
		Type: SecretType,
	}
	if err := ring.write(secret); err != nil {
		return err
	}
	return k.client.Create(ctx, secret)
}

// lacking returns the keys of another ring that this one lacks. It fails if a key has different passphrases in both.
func (r keyring) lacking(other keyring) (keyring, error) {
	var lacking keyring
	for _, one := range other {
		at := slices.IndexFunc(r, func(s stored) bool { return s.Salt == one.Salt || s.ID == one.ID })
		switch {
		case at < 0:
			lacking = append(lacking, one)
		case r[at].passphrase != one.passphrase:
			return nil, fmt.Errorf("the key %s has another passphrase in the backup", one.ID)
		}
	}
	return lacking, nil
}

// data returns the Secret's data.
func (r keyring) data() (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := r.write(secret)
	return secret.Data, err
}
