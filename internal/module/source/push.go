package source

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
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
	manifest, blobs, err := p.artifact()
	if err != nil {
		return Reference{}, fmt.Errorf("creating the module's artifact: %w", err)
	}
	options = options.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	err = options.retry(ctx, func(ctx context.Context) error {
		for _, blob := range blobs {
			if err := remote.WriteLayer(tag.Repository, blob, options.registryOptions(ctx)...); err != nil {
				return registryError(tag.RegistryStr(), err)
			}
		}
		return registryError(tag.RegistryStr(), remote.Put(tag, manifest, options.registryOptions(ctx)...))
	})
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

// artifact returns the manifest and its layers.
func (p Packed) artifact() (rawManifest, []v1.Layer, error) {
	config, archive := static.NewLayer([]byte("{}"), emptyMediaType), static.NewLayer(p.Archive, LayerMediaType)
	blobs := []v1.Layer{config, archive}
	described := make([]v1.Descriptor, 0, len(blobs))
	for _, blob := range blobs {
		one, err := describe(blob)
		if err != nil {
			return nil, nil, err
		}
		described = append(described, one)
	}
	described[1].Annotations = map[string]string{titleAnnotation: p.Module.Name() + ".tar.gz"}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  ArtifactType,
		Config:        described[0],
		Layers:        described[1:],
		Annotations:   map[string]string{titleAnnotation: p.Module.Name()},
	})
	return manifest, blobs, err
}

func describe(blob v1.Layer) (v1.Descriptor, error) {
	digest, err := blob.Digest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	size, err := blob.Size()
	if err != nil {
		return v1.Descriptor{}, err
	}
	mediaType, err := blob.MediaType()
	return v1.Descriptor{MediaType: mediaType, Size: size, Digest: digest}, err
}

// rawManifest is a manifest in the form that remote.Put accepts.
type rawManifest []byte

// RawManifest implements remote.Taggable.
func (m rawManifest) RawManifest() ([]byte, error) { return m, nil }

// MediaType implements remote.Taggable.
func (m rawManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
