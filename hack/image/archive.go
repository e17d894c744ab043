package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// blob is a compressed layer in a file.
type blob struct {
	path string
	// digest is the file's, diffID the uncompressed archive's.
	digest, diffID v1.Hash
	// size is the file's, unpacked the archive's.
	size, unpacked int64
}

// These implement a layer of an image.

func (b blob) Digest() (v1.Hash, error)            { return b.digest, nil }
func (b blob) DiffID() (v1.Hash, error)            { return b.diffID, nil } //nolint:unparam // of an interface
func (b blob) Size() (int64, error)                { return b.size, nil }
func (b blob) MediaType() (types.MediaType, error) { return types.OCILayer, nil }
func (b blob) Compressed() (io.ReadCloser, error)  { return os.Open(b.path) }

// compress writes a layer into a folder of blobs named by digest.
func compress(folder string, l layer, created time.Time) (blob, error) {
	written, err := os.CreateTemp(folder, "layer-")
	if err != nil {
		return blob{}, err
	}
	file, archive := counted{to: written, hash: sha256.New()}, counted{hash: sha256.New()}
	zipped := gzip.NewWriter(&file)
	archive.to = zipped
	err = errors.Join(writeArchive(&archive, l, created), zipped.Close(), written.Chmod(0o644), written.Close())
	if err != nil {
		return blob{}, errors.Join(fmt.Errorf("writing layer %s: %w", l.name, err), os.Remove(written.Name()))
	}
	made := blob{digest: file.digest(), diffID: archive.digest(), size: file.size, unpacked: archive.size}
	made.path = filepath.Join(folder, made.digest.Hex)
	return made, os.Rename(written.Name(), made.path)
}

// writeArchive writes a layer as a reproducible tar archive: local owners do not matter.
func writeArchive(to io.Writer, l layer, created time.Time) error {
	writer := tar.NewWriter(to)
	for _, f := range l.files {
		if err := f.archive(writer, created); err != nil {
			return fmt.Errorf("archiving /%s: %w", f.path, err)
		}
	}
	return writer.Close()
}

func (f file) archive(writer *tar.Writer, created time.Time) error {
	header := &tar.Header{Name: f.path, Mode: int64(f.mode.Perm()), ModTime: created, Typeflag: tar.TypeReg}
	if f.owned {
		header.Uid, header.Gid = owner, owner
	}
	if f.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch {
	case f.mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, f.path+"/"
	case f.mode&fs.ModeSymlink != 0:
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.target
	}
	if header.Typeflag != tar.TypeReg {
		return writer.WriteHeader(header)
	}
	content, size, err := f.open()
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it was only read
	header.Size = size
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(writer, content)
	return err
}

// counted hashes and counts what is written through it.
type counted struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

func (c *counted) Write(part []byte) (int, error) {
	n, err := c.to.Write(part)
	c.size += int64(n)
	_, _ = c.hash.Write(part[:n]) // never fails
	return n, err
}

func (c *counted) digest() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(c.hash.Sum(nil))}
}
