package pulumikeys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// Use counts what is encrypted with one key.
type Use struct {
	// Checkpoints are those that are current, Versions those that are kept from before.
	Checkpoints, Versions int
}

// Uses reads the states of a namespace, of all where it is empty, and counts by the salts of the keys what is encrypted with them. A state
// that cannot be read is an error: nobody knows what opens it.
func Uses(ctx context.Context, store *state.Store, namespace string) (map[string]Use, error) {
	heads, err := store.List(ctx, namespace)
	if err != nil {
		return nil, err
	}
	uses := map[string]Use{}
	for _, head := range heads {
		if err := count(ctx, store, head.Key, uses); err != nil && !errors.Is(err, state.ErrNotFound) {
			return nil, fmt.Errorf("finding out which key state %s is encrypted with: %w", head.Key, err)
		}
	}
	return uses, nil
}

// count adds what a state is encrypted with. One that is gone meanwhile is ErrNotFound. What is written meanwhile is among the versions.
func count(ctx context.Context, store *state.Store, key state.Key, uses map[string]Use) error {
	snapshot, err := store.Get(ctx, key)
	if err != nil || snapshot.Raw == nil {
		return err
	}
	if err := add(uses, snapshot.Raw, Use{Checkpoints: 1}); err != nil {
		return err
	}
	versions, err := store.Versions(ctx, key)
	if err != nil {
		return err
	}
	for _, version := range versions {
		if version.Current {
			continue
		}
		raw, err := store.Version(ctx, key, version.Serial)
		if errors.Is(err, state.ErrNotFound) {
			continue // it has made room for a newer one meanwhile
		}
		if err != nil {
			return err
		}
		if err := add(uses, raw, Use{Versions: 1}); err != nil {
			return err
		}
	}
	return nil
}

func add(uses map[string]Use, raw []byte, more Use) error {
	salt, err := SaltOf(raw)
	if err != nil || salt == "" {
		return err
	}
	use := uses[salt]
	uses[salt] = Use{Checkpoints: use.Checkpoints + more.Checkpoints, Versions: use.Versions + more.Versions}
	return nil
}

// SaltOf returns the salt of the key that a state is encrypted with; "" for what is no checkpoint: the states of other engines are beside Pulumi's.
func SaltOf(raw []byte) (string, error) {
	var file struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return "", errors.New("it is no JSON") // the decoder's own words may repeat what is in it
	}
	if file.Format != statefile.FormatPulumi {
		return "", nil
	}
	envelope, err := statefile.ParseCheckpoint(raw)
	if err != nil {
		return "", err
	}
	return pulumi.SaltOf(envelope.Raw)
}
