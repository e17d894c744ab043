package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// push uploads a layout's images for all platforms, then their referrers, with the credentials of 'docker login'.
func push(ctx context.Context, folder, to string, out io.Writer) error {
	reference, err := name.ParseReference(to)
	if err != nil {
		return fmt.Errorf("reading where to push to: %w; write REGISTRY/REPOSITORY:TAG", err)
	}
	root, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return fmt.Errorf("reading the layout in %s: %w; run 'make image'", folder, err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading the layout in %s: %w; run 'make image'", folder, err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	at := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.MediaType == types.OCIImageIndex })
	if at < 0 {
		return fmt.Errorf("%s has no image; run 'make image'", folder)
	}
	image := manifest.Manifests[at]
	index, err := root.ImageIndex(image.Digest)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(reference, index, options...); err != nil {
		return fmt.Errorf("pushing the image: %w", err)
	}
	for _, d := range manifest.Manifests {
		if d.MediaType != types.OCIManifestSchema1 {
			continue
		}
		artifact, err := root.Image(d.Digest)
		if err != nil {
			return err
		}
		if err := remote.Write(reference.Context().Digest(d.Digest.String()), artifact, options...); err != nil {
			return fmt.Errorf("pushing the SBOM: %w", err)
		}
	}
	fmt.Fprintln(out, reference.Context().Digest(image.Digest.String()))
	return nil
}
