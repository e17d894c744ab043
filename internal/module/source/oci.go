package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	// ArtifactType is the type of the artifact that [Packed.Push] makes.
	ArtifactType = "application/vnd.machine-iac.module.v1"
	// LayerMediaType is the media type of a module's archive in an artifact.
	LayerMediaType = "application/vnd.machine-iac.module.v1.tar+gzip"
)

// generic are media types that other tools use for an archive. Some call it a tar although it is
// compressed.
var generic = []string{
	"application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.docker.image.rootfs.diff.tar.gzip",
	"application/vnd.oci.image.layer.v1.tar",
	"application/gzip", "application/x-gzip", "application/tar+gzip", "application/x-tar+gzip",
	"application/x-gtar", "application/octet-stream",
}

// artifact returns the archive in the artifact of a reference.
func (f *fetcher) artifact(ctx context.Context, reference Reference) ([]byte, error) {
	from, err := repository(reference.location)
	if err != nil {
		return nil, err
	}
	if len(f.SignedBy) > 0 {
		if err := f.checkSigned(ctx, from, reference.digest); err != nil {
			return nil, fmt.Errorf("verifying the artifact's signature: %w", err)
		}
	}
	manifest, err := f.content(ctx, reference.digest, func(ctx context.Context) ([]byte, error) {
		found, err := remote.Get(from.Digest(reference.digest), f.registryOptions(ctx)...)
		if err != nil {
			return nil, registryError(from.RegistryStr(), err)
		}
		return found.Manifest, nil
	})
	if err != nil {
		return nil, fmt.Errorf("getting the artifact's manifest: %w", err)
	}
	layer, err := layerOf(manifest)
	if err != nil {
		return nil, err
	}
	archive, err := f.content(ctx, layer.Digest.String(), func(ctx context.Context) ([]byte, error) {
		return f.layer(ctx, from.Digest(layer.Digest.String()))
	})
	if err != nil {
		return nil, fmt.Errorf("getting the artifact's layer %s: %w", layer.Digest, err)
	}
	return archive, nil
}

// layer returns the content of a layer.
func (f *fetcher) layer(ctx context.Context, at name.Digest) (content []byte, err error) {
	found, err := remote.Layer(at, f.registryOptions(ctx)...)
	if err != nil {
		return nil, registryError(at.RegistryStr(), err)
	}
	stream, err := found.Compressed()
	if err != nil {
		return nil, registryError(at.RegistryStr(), err)
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	return readBounded(stream)
}

// layerOf returns the layer with the module's archive.
func layerOf(content []byte) (v1.Descriptor, error) {
	manifest, err := v1.ParseManifest(bytes.NewReader(content))
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading the artifact's manifest: %w", err)
	}
	if manifest.MediaType.IsIndex() || len(manifest.Layers) == 0 {
		return v1.Descriptor{},
			fmt.Errorf("the digest is that of an artifact of the type %q, which has no layer; use the digest of the manifest of the module's own artifact",
				manifest.MediaType)
	}
	mediaTypes := make([]string, 0, len(manifest.Layers))
	for _, layer := range manifest.Layers {
		mediaTypes = append(mediaTypes, string(layer.MediaType))
	}
	at := slices.Index(mediaTypes, LayerMediaType)
	if at < 0 && len(mediaTypes) == 1 && slices.Contains(generic, mediaTypes[0]) {
		at = 0
	}
	if at < 0 || slices.Contains(mediaTypes[at+1:], LayerMediaType) {
		return v1.Descriptor{},
			fmt.Errorf("the artifact has layers of the media types %s; it must have one of %s, or a single tar+gzip layer",
				strings.Join(mediaTypes, ", "), LayerMediaType)
	}
	layer := manifest.Layers[at]
	if layer.Size > module.MaxArchiveBytes {
		return v1.Descriptor{}, fmt.Errorf("the artifact's layer has %d bytes: %w", layer.Size, errTooLarge)
	}
	if !digestPattern.MatchString(layer.Digest.String()) {
		return v1.Descriptor{}, fmt.Errorf("the artifact's layer has the digest %s; push it again with sha256", layer.Digest)
	}
	return layer, nil
}

// registryOptions disable retries, which retry does.
func (o Options) registryOptions(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(o.Keychain),
		remote.WithTransport(o.Transport),
		remote.WithUserAgent("machine-iac-operator"),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryPredicate(func(error) bool { return false }),
		remote.WithRetryStatusCodes(),
	}
}

// registryError adds advice to an error of a registry.
func registryError(registry string, err error) error {
	var failed *transport.Error
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w; add credentials for %s to Docker's configuration, as 'docker login' does, and set DOCKER_CONFIG to its folder", err, registry)
	case http.StatusNotFound:
		return fmt.Errorf("%w; is the repository correct, and was the artifact pushed to it?", err)
	}
	return err
}

// repository returns the repository of a location in a registry.
func repository(location *url.URL) (name.Repository, error) {
	parsed, err := name.ParseReference(location.Host + location.Path)
	if err != nil {
		return name.Repository{}, fmt.Errorf("parsing the repository: %w", err)
	}
	return parsed.Context(), nil
}
