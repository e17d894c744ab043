package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// key is the same for runs that may use one provider process after another: those with the same program, the same owner of the credentials, and
// the same environment, hence the same credentials.
type key struct {
	// program is the file with its identity: one that was replaced in its place is another.
	program string
	owner   string
	// environment is a digest, so that no credentials stay in memory for longer than their providers.
	environment string
}

// replaces reports whether a provider with this key makes one with the other useless.
func (k key) replaces(other key) bool {
	return k.owner != "" && k.owner == other.owner && k.environment != other.environment
}

func keyOf(file string, use Use) (key, error) {
	info, err := os.Stat(file)
	if err != nil {
		return key{}, fmt.Errorf("finding the provider %s: %w", filepath.Base(file), err)
	}
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(use.Environment)) {
		fmt.Fprintf(hash, "%q=%q\n", name, use.Environment[name])
	}
	return key{
		program:     fmt.Sprintf("%s %d %d", file, info.Size(), info.ModTime().UnixNano()),
		owner:       use.Owner,
		environment: hex.EncodeToString(hash.Sum(nil)),
	}, nil
}
