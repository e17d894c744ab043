package source

import (
	"bytes"
	"io/fs"
	"net/url"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// Packed is a valid module in an archive.
type Packed struct {
	// Module in the archive.
	Module *module.Module
	// Archive is a tar.gz. It is reproducible.
	Archive []byte
}

// Pack packs the module in the root of fsys.
func Pack(fsys fs.FS) (Packed, error) {
	var archive bytes.Buffer
	if err := module.WriteArchive(&archive, fsys); err != nil {
		return Packed{}, err
	}
	// Load what was packed, whatever happens to the folder meanwhile.
	files, err := module.ReadArchive(bytes.NewReader(archive.Bytes()))
	if err != nil {
		return Packed{}, err
	}
	loaded, err := load.Module(files)
	if err != nil {
		return Packed{}, err
	}
	return Packed{Module: loaded, Archive: archive.Bytes()}, nil
}

// FileReference returns the reference to the archive as a file with an absolute path.
func (p Packed) FileReference(path string) Reference {
	return Reference{location: &url.URL{Scheme: schemeFile, Path: path}, digest: digestOf(p.Archive)}
}
