package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
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
func (s source) write(folder string, contents []content) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(folder), "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing is left of it after the rename
	started := time.Now()
	digest, size, err := s.fill(scratch, contents)
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
func (s source) fill(folder string, contents []content) (digest v1.Hash, size int64, err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	path, err := layout.Write(folder, index)
	if err != nil {
		return v1.Hash{}, 0, err
	}
	var artifacts []v1.Image
	for _, one := range contents {
		image, written, err := s.writeImage(path, one)
		if err != nil {
			return v1.Hash{}, 0, err
		}
		descriptor, err := partial.Descriptor(image)
		if err != nil {
			return v1.Hash{}, 0, err
		}
		size += written
		descriptor.Platform, descriptor.ArtifactType = &one.platform, ""
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: *descriptor})
		artifact, err := s.artifact(one, *descriptor)
		if err != nil {
			return v1.Hash{}, 0, err
		}
		artifacts = append(artifacts, artifact)
	}
	digest, err = s.writeIndex(path, index)
	for _, artifact := range artifacts {
		err = errors.Join(err, path.AppendImage(artifact))
	}
	return digest, size, err
}

// writeIndex writes the index of images that are in the layout already.
func (s source) writeIndex(path layout.Path, images v1.ImageIndex) (v1.Hash, error) {
	index, ok := mutate.Annotations(images, s.annotations()).(v1.ImageIndex)
	if !ok {
		return v1.Hash{}, errors.New("annotating the index: the library returned another type")
	}
	raw, err := index.RawManifest()
	if err != nil {
		return v1.Hash{}, err
	}
	digest, size, err := v1.SHA256(bytes.NewReader(raw))
	return digest, errors.Join(err, path.WriteBlob(digest, io.NopCloser(bytes.NewReader(raw))),
		path.AppendDescriptor(v1.Descriptor{MediaType: types.OCIImageIndex, Size: size, Digest: digest,
			Annotations: map[string]string{refName: s.version}}))
}

// writeImage compresses the layers in parallel, and returns the image and their size.
func (s source) writeImage(path layout.Path, one content) (_ v1.Image, size int64, err error) {
	started := time.Now()
	image, err := s.image(one)
	if err != nil {
		return nil, 0, err
	}
	if err := path.WriteImage(image); err != nil {
		return nil, 0, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, 0, err
	}
	for _, l := range manifest.Layers { // a layer's file is its owner's alone until here
		size += l.Size
		err = errors.Join(err, os.Chmod(filepath.Join(string(path), "blobs", l.Digest.Algorithm, l.Digest.Hex), 0o644))
	}
	s.step(started, "%s: compressed %d layers", one.platform, len(manifest.Layers))
	return image, size, err
}

func (s source) image(one content) (v1.Image, error) {
	created := v1.Time{Time: s.created}
	image, err := mutate.ConfigFile(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{
			OS: one.platform.OS, Architecture: one.platform.Architecture, Created: created, Config: s.config(),
			RootFS: v1.RootFS{Type: "layers"},
		},
	)
	if err != nil {
		return nil, err
	}
	var layers []mutate.Addendum
	for _, l := range one.layers {
		layers = append(layers, mutate.Addendum{Layer: l.blob(s.created),
			History: v1.History{Created: created, CreatedBy: "hack/image"}})
	}
	return mutate.Append(image, layers...)
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
		return nil, errors.New("annotating the SBOM: the library returned another type")
	}
	return artifact, nil
}
