package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/stream"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// blob returns a layer of an image. It is archived and compressed as it is read, which is possible once.
func (l layer) blob(created time.Time) v1.Layer {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(writeArchive(writer, l, created)) }()
	return stream.NewLayer(reader, stream.WithCompressionLevel(gzip.DefaultCompression),
		stream.WithMediaType(types.OCILayer))
}

// writeArchive writes a layer as a reproducible tar archive: local owners do not matter.
func writeArchive(to io.Writer, l layer, created time.Time) error {
	writer := tar.NewWriter(to)
	for _, f := range l.files {
		if err := f.archive(writer, created); err != nil {
			return fmt.Errorf("archiving /%s of layer %s: %w", f.path, l.name, err)
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
