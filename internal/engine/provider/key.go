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

// key is the same for runs that can use one provider process after another: those with the same
// program, address, owner of credentials, environment, and files, and hence the same credentials.
type key struct {
	// program is the file with its identity: a replaced file is another program.
	program string
	address string
	owner   string
	// environment is a digest of it and the files, so that credentials do not stay in memory longer than their providers.
	environment string
}

// replaces reports whether a provider with this key makes one with the other key obsolete.
func (k key) replaces(other key) bool {
	return k.owner != "" && k.owner == other.owner && k.environment != other.environment
}

func keyOf(address, file string, use Use) (key, error) {
	info, err := os.Stat(file)
	if err != nil {
		return key{}, fmt.Errorf("finding the provider %s: %w", filepath.Base(file), err)
	}
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(use.Environment)) {
		fmt.Fprintf(hash, "%q=%q\n", name, use.Environment[name])
	}
	for _, name := range slices.Sorted(maps.Keys(use.Secrets)) {
		fmt.Fprintf(hash, "%q in a file: %q\n", name, use.Secrets[name])
	}
	return key{
		program:     fmt.Sprintf("%s %d %d", file, info.Size(), info.ModTime().UnixNano()),
		address:     address,
		owner:       use.Owner,
		environment: hex.EncodeToString(hash.Sum(nil)),
	}, nil
}
