package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"
)

// refName annotates an image's tag in a layout's index.
const refName = "org.opencontainers.image.ref.name"

// config returns the image's configuration. Keep it in sync with the Dockerfile.
func (s source) config() v1.Config {
	return v1.Config{
		User:       fmt.Sprintf("%d:%d", owner, owner),
		Entrypoint: []string{"/usr/bin/machine-controllers"},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		WorkingDir: "/",
		Labels:     s.labels(),
	}
}

func (s source) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "machine-iac-operator",
		"org.opencontainers.image.version":  s.version,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"io.openshift.release.operator":     "true", // a release payload takes /manifests
	}
}

// annotations returns the labels and what the Dockerfile does not know.
func (s source) annotations() map[string]string {
	out := s.labels()
	out["org.opencontainers.image.created"] = s.created.Format(time.RFC3339)
	if s.revision != "" {
		out["org.opencontainers.image.revision"] = s.revision
	}
	return out
}

// write writes a layout. An existing one stays until the new one is complete.
func (s source) write(ctx context.Context, folder string, contents []content) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(folder), "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing is left of it after the rename
	started := time.Now()
	digest, size, err := s.fill(ctx, scratch, contents)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.Chmod(scratch, 0o755), os.Rename(scratch, folder)); err != nil {
		return fmt.Errorf("replacing %s: %w", folder, err)
	}
	s.step(started, "%s: %s, %d MB", folder, s.version, size>>20)
	fmt.Fprintln(s.out, digest)
	return nil
}

// fill writes a layout into an empty folder, and returns the index's digest and the size of all layers.
func (s source) fill(ctx context.Context, folder string, contents []content) (v1.Hash, int64, error) {
	blobs := filepath.Join(folder, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return v1.Hash{}, 0, err
	}
	path, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return v1.Hash{}, 0, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var artifacts []v1.Image
	var size int64
	for _, one := range contents {
		layers, err := s.compressAll(ctx, blobs, one)
		if err != nil {
			return v1.Hash{}, 0, err
		}
		for _, l := range layers {
			size += l.size
		}
		image, err := s.image(one.platform, layers)
		if err != nil {
			return v1.Hash{}, 0, err
		}
		descriptor, err := partial.Descriptor(image)
		if err != nil {
			return v1.Hash{}, 0, err
		}
		descriptor.Platform, descriptor.ArtifactType = &one.platform, ""
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: *descriptor})
		artifact, err := s.artifact(one, *descriptor)
		if err != nil {
			return v1.Hash{}, 0, err
		}
		artifacts = append(artifacts, artifact)
	}
	index, ok := mutate.Annotations(index, s.annotations()).(v1.ImageIndex)
	if !ok {
		return v1.Hash{}, 0, errors.New("annotating the index: it is none any more")
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: s.version})); err != nil {
		return v1.Hash{}, 0, err
	}
	for _, artifact := range artifacts {
		if err := path.AppendImage(artifact); err != nil {
			return v1.Hash{}, 0, err
		}
	}
	digest, err := index.Digest()
	return digest, size, err
}

// compressAll compresses the layers of an image in parallel.
func (s source) compressAll(ctx context.Context, blobs string, one content) ([]blob, error) {
	made := make([]blob, len(one.layers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for at, l := range one.layers {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			started := time.Now()
			done, err := compress(blobs, l, s.created)
			if err != nil {
				return err
			}
			made[at] = done
			s.step(started, "%s: layer %s, %d MB, %d MB unpacked", one.platform, l.name,
				done.size>>20, done.unpacked>>20)
			return nil
		})
	}
	return made, group.Wait()
}

func (s source) image(platform v1.Platform, layers []blob) (v1.Image, error) {
	created := v1.Time{Time: s.created}
	image, err := mutate.ConfigFile(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{
			OS: platform.OS, Architecture: platform.Architecture, Created: created, Config: s.config(),
			RootFS: v1.RootFS{Type: "layers"},
		},
	)
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		whole, err := partial.CompressedToLayer(l)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image,
			mutate.Addendum{Layer: whole, History: v1.History{Created: created, CreatedBy: "hack/image"}})
		if err != nil {
			return nil, err
		}
	}
	return image, nil
}

// artifact returns the SBOM as a manifest that refers to its image. Its type is that of its configuration.
func (s source) artifact(one content, subject v1.Descriptor) (v1.Image, error) {
	subject.Platform = nil
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), sbomType)
	filled, err := mutate.Append(base, mutate.Addendum{
		Layer:       static.NewLayer(one.sbom, sbomType),
		Annotations: map[string]string{"org.opencontainers.image.title": filepath.Base(sbomFile)},
	})
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{"org.opencontainers.image.created": s.created.Format(time.RFC3339)}
	artifact, ok := mutate.Subject(mutate.Annotations(filled, annotations), subject).(v1.Image)
	if !ok {
		return nil, errors.New("annotating the list of software: it is none any more")
	}
	return artifact, nil
}
