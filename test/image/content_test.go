//go:build image

package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	root     = "../.."
	sbomFile = "usr/share/machine-iac/sbom.spdx.json"
	sbomType = "application/spdx+json"
)

// built is the layout that make image wrote.
type built struct {
	all     v1.ImageIndex
	index   *v1.IndexManifest
	images  v1.ImageIndex
	version string
}

func read(t *testing.T) built {
	t.Helper()
	folder := filepath.Join(root, "dist", "image")
	all, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatalf("reading %s: %v; run 'make image'", folder, err)
	}
	top, err := all.IndexManifest()
	if err != nil || len(top.Manifests) == 0 || top.Manifests[0].MediaType != types.OCIImageIndex {
		t.Fatalf("%s has no image first: %v, %v", folder, top, err)
	}
	images, err := all.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	index, err := images.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return built{all: all, images: images, index: index,
		version: top.Manifests[0].Annotations["org.opencontainers.image.ref.name"]}
}

func (b built) image(t *testing.T, d v1.Descriptor) v1.Image {
	t.Helper()
	image, err := b.images.Image(d.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// own returns the image that this machine can run.
func (b built) own(t *testing.T) v1.Image {
	t.Helper()
	for _, d := range b.index.Manifests {
		if d.Platform.Architecture == runtime.GOARCH {
			return b.image(t, d)
		}
	}
	t.Skipf("the image is not built for %s, so that nothing of it runs here", runtime.GOARCH)
	return nil
}

// each calls a function with every file of an image, from its topmost layer.
func each(t *testing.T, image v1.Image, do func(*tar.Header, io.Reader) error) {
	t.Helper()
	archive := mutate.Extract(image)
	defer archive.Close()
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = do(header, reader)
		}
		if err != nil {
			t.Fatalf("unpacking the image: %v", err)
		}
	}
}

// unpacked is the folder with the image's files. Tests share it because none of them can write to it.
var unpacked string

// unpack writes the image's files for this machine into a folder, with their owners, and returns it.
func (b built) unpack(t *testing.T) string {
	t.Helper()
	image := b.own(t)
	if unpacked != "" {
		return unpacked
	}
	folder, err := os.MkdirTemp("", "image-check-")
	if err != nil {
		t.Fatal(err)
	}
	unpacked = folder // TestMain removes it
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	each(t, image, func(header *tar.Header, content io.Reader) error {
		to := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeSymlink:
			return os.Symlink(header.Linkname, to)
		case tar.TypeDir:
			return errors.Join(os.MkdirAll(to, 0o755), os.Chown(to, header.Uid, header.Gid),
				os.Chmod(to, header.FileInfo().Mode()))
		}
		file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close(), os.Chown(to, header.Uid, header.Gid),
			os.Chmod(to, header.FileInfo().Mode()))
	})
	return folder
}

// spdx is the part of an SBOM that tests read.
type spdx struct {
	Files []struct {
		Name      string `json:"fileName"`
		Checksums []struct {
			Algorithm string `json:"algorithm"`
			Value     string `json:"checksumValue"`
		} `json:"checksums"`
	} `json:"files"`
}

func TestContent(t *testing.T) {
	b := read(t)
	for _, d := range b.index.Manifests {
		t.Run(d.Platform.String(), func(t *testing.T) {
			sums, list := map[string]string{}, []byte(nil)
			each(t, b.image(t, d), func(header *tar.Header, content io.Reader) error {
				checkOwner(t, header)
				whole, err := io.ReadAll(content)
				if err != nil || header.Typeflag != tar.TypeReg {
					return err
				}
				if header.Name == sbomFile {
					list = whole
					return nil
				}
				sum := sha256.Sum256(whole)
				sums["./"+header.Name] = hex.EncodeToString(sum[:])
				if header.FileInfo().Mode().Perm()&0o111 != 0 {
					checkProgram(t, header.Name, whole, *d.Platform)
				}
				return nil
			})
			checkList(t, list, sums)
			if !bytes.Equal(list, b.attached(t, d.Digest)) {
				t.Error("the list beside the image is not the one in it")
			}
		})
	}
}

// checkOwner checks that only root may write to a file or folder, in case a Pod's root is not read-only.
func checkOwner(t *testing.T, header *tar.Header) {
	t.Helper()
	name, mode := strings.TrimSuffix(header.Name, "/"), header.FileInfo().Mode()
	writable := header.Uid != 0 || header.Gid != 0 || mode&fs.ModeSymlink == 0 && mode.Perm()&0o022 != 0
	if wanted := name == "tmp" || name == "var/lib/machine-iac"; writable != wanted {
		t.Errorf("/%s has the mode %s and belongs to %d:%d", name, mode, header.Uid, header.Gid)
	}
}

// checkProgram checks that a program runs on a platform and needs no library.
func checkProgram(t *testing.T, name string, content []byte, platform v1.Platform) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		t.Errorf("/%s is no program in Go: %v", name, err)
		return
	}
	built := map[string]string{}
	for _, setting := range info.Settings {
		built[setting.Key] = setting.Value
	}
	if built["GOOS"] != platform.OS || built["GOARCH"] != platform.Architecture || built["CGO_ENABLED"] != "0" {
		t.Errorf("/%s is built for %s/%s, with CGO_ENABLED=%s", name, built["GOOS"],
			built["GOARCH"], built["CGO_ENABLED"])
	}
}

// checkList checks that a list has the files that the image has, by their digests.
func checkList(t *testing.T, list []byte, sums map[string]string) {
	t.Helper()
	var read spdx
	if err := json.Unmarshal(list, &read); err != nil {
		t.Fatalf("reading /%s: %v", sbomFile, err)
	}
	if len(read.Files) != len(sums) {
		t.Errorf("the list has %d files, the image %d", len(read.Files), len(sums))
	}
	for _, f := range read.Files {
		for _, sum := range f.Checksums {
			if sum.Algorithm == "SHA256" && sum.Value != sums[f.Name] {
				t.Errorf("%s has the digest %q in the list and %q in the image", f.Name, sum.Value, sums[f.Name])
			}
		}
	}
}

// attached returns the list that refers to an image.
func (b built) attached(t *testing.T, image v1.Hash) []byte {
	t.Helper()
	top, err := b.all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range top.Manifests {
		if d.ArtifactType != sbomType {
			continue
		}
		artifact, err := b.all.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := artifact.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if manifest.Subject.Digest != image {
			continue
		}
		layers, err := artifact.Layers()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		whole, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		return whole
	}
	t.Fatalf("no list refers to %s", image)
	return nil
}
