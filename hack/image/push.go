package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// push uploads a layout's images for all platforms, then their referrers, with the credentials of 'docker login'.
func push(ctx context.Context, folder, to string, out io.Writer) error {
	reference, err := name.ParseReference(to)
	if err != nil {
		return fmt.Errorf("reading where to push to: %w; write REGISTRY/REPOSITORY:TAG", err)
	}
	root, image, err := readLayout(folder)
	if err != nil {
		return err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	index, err := root.ImageIndex(image.Digest)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(reference, index, options...); err != nil {
		return fmt.Errorf("pushing the image: %w", err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return err
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

// readLayout returns a layout and its image for all platforms.
func readLayout(folder string) (v1.ImageIndex, v1.Descriptor, error) {
	root, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, v1.Descriptor{}, fmt.Errorf("reading the layout in %s: %w; run 'make image'", folder, err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return nil, v1.Descriptor{}, fmt.Errorf("reading the layout in %s: %w; run 'make image'", folder, err)
	}
	at := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.MediaType == types.OCIImageIndex })
	if at < 0 {
		return nil, v1.Descriptor{}, fmt.Errorf("%s has no image; run 'make image'", folder)
	}
	return root, manifest.Manifests[at], nil
}

// archive writes the image of this machine's platform into a file, in the format of docker save.
func archive(folder, as, file string) error {
	tag, err := name.NewTag(as)
	if err != nil {
		return fmt.Errorf("reading the name of the image: %w; write REPOSITORY:TAG", err)
	}
	root, all, err := readLayout(folder)
	if err != nil {
		return err
	}
	index, err := root.ImageIndex(all.Digest)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range manifest.Manifests {
		if d.Platform == nil || d.Platform.OS != "linux" || d.Platform.Architecture != runtime.GOARCH {
			continue
		}
		image, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		return tarball.WriteToFile(file, tag, image)
	}
	return fmt.Errorf("%s has no image for linux/%s; run 'make image'", folder, runtime.GOARCH)
}
