package offline

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

const (
	// bridge is the package that runs Terraform providers.
	bridge = "terraform-provider"
	// defaultRegistry applies to addresses without a registry.
	defaultRegistry = "registry.opentofu.org"
)

type bridged struct {
	// address is host/namespace/type.
	address, version string
	// kinds are the types of resources and data sources that the stack may use; all if empty.
	kinds []string
}

// bridgedIn returns the providers in a stack's sdks.
func bridgedIn(files fs.FS) ([]bridged, error) {
	names, err := fs.Glob(files, "sdks/*/*.yaml")
	if err != nil {
		return nil, err
	}
	var found []bridged
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the stack: %w", err)
		}
		one, err := readBridged(raw)
		if err != nil {
			return nil, fmt.Errorf("reading %s of the stack: %w", name, err)
		}
		if !slices.ContainsFunc(found, func(other bridged) bool { return other.folder() == one.folder() }) {
			found = append(found, one)
		}
	}
	return found, nil
}

func readBridged(raw []byte) (bridged, error) {
	var declared struct {
		Name             string `yaml:"name"`
		Parameterization struct {
			Value string `yaml:"value"`
		} `yaml:"parameterization"`
	}
	if err := yamlnode.Unmarshal(raw, &declared); err != nil {
		return bridged{}, err
	}
	if declared.Name != bridge {
		return bridged{}, fmt.Errorf("the package %q is not bridged from a Terraform provider, so there can be no "+
			"stub provider for it; "+
			"use the bridge (pulumi package add terraform-provider ...)", declared.Name)
	}
	value, err := base64.StdEncoding.DecodeString(declared.Parameterization.Value)
	if err != nil {
		return bridged{}, errors.New("the value of its parameterization is not base64")
	}
	var read struct {
		Remote struct {
			URL     string `json:"url"`
			Version string `json:"version"`
		} `json:"remote"`
		Includes []string `json:"includes"`
	}
	if err := json.Unmarshal(value, &read); err != nil {
		return bridged{}, errors.New("the value of its parameterization is no JSON object")
	}
	parts := strings.Split(read.Remote.URL, "/")
	if len(parts) == 2 {
		parts = append([]string{defaultRegistry}, parts...)
	}
	if len(parts) != 3 || read.Remote.Version == "" ||
		slices.ContainsFunc(parts, func(part string) bool { return part == "" || part == ".." }) {
		return bridged{}, errors.New("its parameterization names no provider with url and version; pin one, as " +
			"host/namespace/type")
	}
	return bridged{address: strings.Join(parts, "/"), version: read.Remote.Version, kinds: read.Includes}, nil
}

// folder is the provider's path in a mirror.
func (b bridged) folder() string {
	return filepath.Join(filepath.FromSlash(b.address), b.version, runtime.GOOS+"_"+runtime.GOARCH)
}

func (b bridged) uses(kind string) bool { return len(b.kinds) == 0 || slices.Contains(b.kinds, kind) }

// file returns the provider's executable in a mirror.
func (b bridged) file(mirror string) (string, error) {
	files, err := filepath.Glob(filepath.Join(mirror, b.folder(), "terraform-provider-*"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("finding the provider %s %s: %s has none for %s_%s; add it, or name another folder "+
			"with --provider-mirror",
			b.address, b.version, mirror, runtime.GOOS, runtime.GOARCH)
	}
	return files[0], nil
}

// executable is the file name that the bridge looks for.
func (b bridged) executable() string {
	return "terraform-provider-" + path.Base(b.address) + "_v" + b.version
}
