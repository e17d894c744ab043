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

// Use counts the states that one key encrypts.
type Use struct {
	// Checkpoints counts current states, Versions earlier ones.
	Checkpoints, Versions int
}

// Uses reads the states of a namespace, or of all namespaces if it is empty, and counts them by salt. An unreadable
// state is an error, because its key is unknown.
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

// count counts a state and its versions. It returns ErrNotFound for a state that is gone. A state that is replaced
// meanwhile is among the versions.
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
			continue // evicted by a newer version
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

// SaltOf returns the salt of the key that encrypts a state, or "" for a state of another engine.
func SaltOf(raw []byte) (string, error) {
	var file struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return "", errors.New("it is no JSON") // the decoder's error may quote the state
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
