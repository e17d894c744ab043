package source

import (
	"bytes"
	"io/fs"
	"net/url"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// Packed is a module that keeps the contract, in an archive.
type Packed struct {
	// Module is what the archive holds.
	Module *module.Module
	// Archive is a tar.gz. The same files always give the same bytes.
	Archive []byte
}

// Pack packs the module in the root of fsys.
func Pack(fsys fs.FS) (Packed, error) {
	var archive bytes.Buffer
	if err := snapshot.WriteArchive(&archive, fsys); err != nil {
		return Packed{}, err
	}
	// What is loaded is what was packed, whatever happens to the folder meanwhile.
	files, err := snapshot.ReadArchive(bytes.NewReader(archive.Bytes()))
	if err != nil {
		return Packed{}, err
	}
	loaded, err := load.Module(files)
	if err != nil {
		return Packed{}, err
	}
	return Packed{Module: loaded, Archive: archive.Bytes()}, nil
}

// FileReference returns the reference to the archive as a file, whose path is absolute.
func (p Packed) FileReference(path string) Reference {
	return Reference{location: &url.URL{Scheme: schemeFile, Path: path}, digest: digestOf(p.Archive)}
}
