package tofu

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsimple"
)

// lockFile is the name of the file in which a module selects its providers.
const lockFile = ".terraform.lock.hcl"

// The registries that a provider without a host comes from. Both hold the same packages.
const (
	registryOfOpenTofu  = "registry.opentofu.org/"
	registryOfTerraform = "registry.terraform.io/"
)

// selection is one provider that a lock file selects.
type selection struct {
	// Address is host/namespace/type.
	Address     string   `hcl:"address,label"`
	Version     string   `hcl:"version"`
	Constraints string   `hcl:"constraints,optional"`
	Hashes      []string `hcl:"hashes,optional"`
}

// selections are what a lock file selects, by address.
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
		found[provider.Address] = provider
	}
	return found, nil
}

// forEngine adds each provider of one engine's default registry under the other's name, so that one committed lock file serves
// both engines. An engine ignores what the module does not ask for.
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
		all[provider.Address] = provider
	}
	return all
}

// withoutHashes selects the same versions and asks for no checksum.
func (s selections) withoutHashes() selections {
	bare := selections{}
	for address, provider := range s {
		provider.Hashes = nil
		bare[address] = provider
	}
	return bare
}

// encode writes a lock file as engines do: in order, and with the same text for the same selections.
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

// checkSelected compares what the engine selected with what the module's lock file allows: every provider must be named there,
// with its version. Engines check the checksums where there are any, but choose for themselves what the file leaves out.
func checkSelected(committed, selected selections) error {
	for _, address := range slices.Sorted(maps.Keys(selected)) {
		wanted, found := committed[address]
		switch {
		case !found:
			return fmt.Errorf("the module's %s does not select %s; add it (version %s is at hand)",
				lockFile, address, selected[address].Version)
		case wanted.Version != selected[address].Version:
			return fmt.Errorf("the module's %s selects version %s of %s, the engine chose %s; make its version constraints agree",
				lockFile, wanted.Version, address, selected[address].Version)
		}
	}
	return nil
}
