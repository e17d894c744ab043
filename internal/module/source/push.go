package source

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	emptyMediaType  = "application/vnd.oci.empty.v1+json"
	titleAnnotation = "org.opencontainers.image.title"
)

// Push pushes the archive to a registry, at oci://registry/repository:tag, and returns the
// reference with its digest. The artifact is reproducible.
func (p Packed) Push(ctx context.Context, target string, options Options) (Reference, error) {
	location, tag, err := parseTarget(target)
	if err != nil {
		return Reference{}, fmt.Errorf("parsing the target of the push: %w", err)
	}
	manifest, err := options.push(ctx, tag, v1.Manifest{
		ArtifactType: ArtifactType, Annotations: map[string]string{titleAnnotation: p.Module.Name()},
	}, emptyMediaType, static.NewLayer(p.Archive, LayerMediaType),
		map[string]string{titleAnnotation: p.Module.Name() + ".tar.gz"})
	if err != nil {
		return Reference{}, fmt.Errorf("pushing the module to %s: %w", show(location), err)
	}
	return Reference{location: location, digest: digestOf(manifest)}, nil
}

// parseTarget parses a location in a registry with a tag.
func parseTarget(text string) (*url.URL, name.Tag, error) {
	if _, digest := cut(text); digest != "" {
		return nil, name.Tag{}, fmt.Errorf("the digest %q is computed from what is pushed; remove it", digest)
	}
	location, err := parseLocation(text)
	if err != nil {
		return nil, name.Tag{}, err
	}
	if location.Scheme != schemeOCI {
		return nil, name.Tag{}, fmt.Errorf("%s is not a location in a registry; use oci://registry/repository:tag",
			show(location))
	}
	if !strings.Contains(location.Path, ":") {
		return nil, name.Tag{},
			fmt.Errorf("%s has no tag; use oci://registry/repository:tag, for example with the module's version", show(location))
	}
	tag, err := name.NewTag(location.Host + location.Path)
	return location, tag, err
}

// push pushes a manifest with an empty configuration and one layer, and returns the manifest.
func (o Options) push(ctx context.Context, to name.Tag, manifest v1.Manifest, config types.MediaType, layer v1.Layer,
	annotations map[string]string) (rawManifest, error) {
	blobs := []v1.Layer{static.NewLayer([]byte("{}"), config), layer}
	described := make([]v1.Descriptor, 0, len(blobs))
	for _, blob := range blobs {
		one, err := partial.Descriptor(blob)
		if err != nil {
			return nil, err
		}
		described = append(described, *one)
	}
	described[1].Annotations = annotations
	manifest.SchemaVersion, manifest.MediaType = 2, types.OCIManifestSchema1
	manifest.Config, manifest.Layers = described[0], described[1:]
	raw, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return raw, o.retry(ctx, func(ctx context.Context) error {
		for _, blob := range blobs {
			if err := remote.WriteLayer(to.Repository, blob, o.registryOptions(ctx)...); err != nil {
				return registryError(to.RegistryStr(), err)
			}
		}
		return registryError(to.RegistryStr(), remote.Put(to, rawManifest(raw), o.registryOptions(ctx)...))
	})
}

// rawManifest is a manifest in the form that remote.Put accepts.
type rawManifest []byte

// RawManifest implements remote.Taggable.
func (m rawManifest) RawManifest() ([]byte, error) { return m, nil }

// MediaType implements remote.Taggable.
func (m rawManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
