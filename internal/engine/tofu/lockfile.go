package tofu

import (
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2/hclsimple"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
)

// lockFile is the file in which a module pins its providers.
const lockFile = ".terraform.lock.hcl"

// The default registries for providers without a host. Both serve the packages of a provider's
// author, but each builds HashiCorp's providers itself.
const (
	registryOfOpenTofu  = "registry.opentofu.org/"
	registryOfTerraform = "registry.terraform.io/"
	builtByRegistry     = "hashicorp/"
)

// selection is one provider in a lock file.
type selection struct {
	// Address is host/namespace/type.
	Address     string   `hcl:"address,label"`
	Version     string   `hcl:"version"`
	Constraints string   `hcl:"constraints,optional"`
	Hashes      []string `hcl:"hashes,optional"`
}

// addressPattern matches addresses that can be used as folder names. Engines write international names as they are.
var addressPattern = regexp.MustCompile(`^[\pL\pN][\pL\pM\pN.:-]*(/[\pL\pM\pN_-]+){2}$`)

// selections are the providers in a lock file, by address.
type selections map[string]selection

func parseLockFile(content []byte) (selections, error) {
	var file struct {
		Providers []selection `hcl:"provider,block"`
	}
	if err := hclsimple.Decode("lock.hcl", content, nil, &file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", lockFile, err)
	}
	found := selections{}
	for _, provider := range file.Providers {
		if !addressPattern.MatchString(provider.Address) {
			return nil, fmt.Errorf("reading %s: invalid provider %q; write host/namespace/type", lockFile, provider.Address)
		}
		if _, err := version.NewSemver(provider.Version); err != nil {
			return nil, fmt.Errorf("reading %s: invalid version %q of %s; write an exact version, such as 1.19.0",
				lockFile, provider.Version, provider.Address)
		}
		found[provider.Address] = provider
	}
	return found, nil
}

// forEngine adds each provider of one engine's default registry under the other registry's name, so
// that one committed lock file works with both engines. An engine ignores providers that the module
// does not require.
func (s selections) forEngine(name string) selections {
	from, to := registryOfTerraform, registryOfOpenTofu
	if name == Terraform {
		from, to = to, from
	}
	all := maps.Clone(s)
	for address, provider := range s {
		rest, isDefault := strings.CutPrefix(address, from)
		if _, selected := s[to+rest]; !isDefault || selected {
			continue
		}
		provider.Address = to + rest
		if strings.HasPrefix(rest, builtByRegistry) {
			provider.Hashes = nil
		}
		all[provider.Address] = provider
	}
	return all
}

// WithoutChecksums returns the providers from the two registries for which a lock file has no
// checksums. Any binary is accepted for them.
func WithoutChecksums(content []byte) ([]string, error) {
	committed, err := parseLockFile(content)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, address := range slices.Sorted(maps.Keys(committed)) {
		published := strings.HasPrefix(address, registryOfOpenTofu) || strings.HasPrefix(address, registryOfTerraform)
		if published && len(committed[address].Hashes) == 0 {
			found = append(found, address)
		}
	}
	return found, nil
}

// withoutHashes returns the same versions without checksums.
func (s selections) withoutHashes() selections {
	bare := selections{}
	for address, provider := range s {
		provider.Hashes = nil
		bare[address] = provider
	}
	return bare
}

// forMirror returns the same selections, without checksums for providers that the mirror's manifest
// covers: a provider built from source differs from the registry's binary. It returns an error if
// the mirror does not match its manifest.
func (s selections) forMirror(mirror *provider.Mirror) (selections, error) {
	checked := selections{}
	for address, selected := range s {
		packages, err := mirror.Packages(address, selected.Version, runtime.GOOS+"_"+runtime.GOARCH)
		if err != nil {
			return nil, err
		}
		vouched := len(packages) > 0
		for _, file := range packages {
			one, err := mirror.Vouches(file)
			if err != nil {
				return nil, err
			}
			vouched = vouched && one
		}
		if vouched {
			selected.Hashes = nil
		}
		checked[address] = selected
	}
	return checked, nil
}

// LockForMirror returns the lock file to use with an engine that takes providers from the mirror.
func LockForMirror(content []byte, mirror *provider.Mirror) ([]byte, error) {
	committed, err := parseLockFile(content)
	if err != nil {
		return nil, err
	}
	checked, err := committed.forMirror(mirror)
	if err != nil {
		return nil, err
	}
	return checked.encode(), nil
}

// encode writes a lock file as engines do: sorted, and always the same for the same selections.
func (s selections) encode() []byte {
	var out strings.Builder
	for _, address := range slices.Sorted(maps.Keys(s)) {
		provider := s[address]
		fmt.Fprintf(&out, "provider %s {\n  version = %s\n", strconv.Quote(address), strconv.Quote(provider.Version))
		if provider.Constraints != "" {
			fmt.Fprintf(&out, "  constraints = %s\n", strconv.Quote(provider.Constraints))
		}
		if len(provider.Hashes) > 0 {
			out.WriteString("  hashes = [\n")
			for _, hash := range provider.Hashes {
				fmt.Fprintf(&out, "    %s,\n", strconv.Quote(hash))
			}
			out.WriteString("  ]\n")
		}
		out.WriteString("}\n\n")
	}
	return []byte(out.String())
}

// checkSelected compares the providers that the engine selected with the module's lock file. Every
// provider must be listed with its version. Engines verify checksums, but choose versions
// themselves for providers that the file does not list.
func checkSelected(committed, selected selections) error {
	for _, address := range slices.Sorted(maps.Keys(selected)) {
		wanted, found := committed[address]
		switch {
		case !found:
			return fmt.Errorf("the module's %s does not list %s; add it (version %s is available)",
				lockFile, address, selected[address].Version)
		case wanted.Version != selected[address].Version:
			return fmt.Errorf("the module's %s has version %s of %s, but the engine selected %s; make the version constraint match",
				lockFile, wanted.Version, address, selected[address].Version)
		}
	}
	return nil
}
