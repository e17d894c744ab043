package module

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// Limits for reading a module. They keep a wrong folder from being read into memory, and the HCL
// parser, which recurses, within its stack.
const (
	maxFiles     = 256
	maxFileBytes = 256 << 10
	maxBytes     = 4 << 20
)

// LockFile is the file in which OpenTofu and Terraform pin providers.
const LockFile = ".terraform.lock.hcl"

// Files is the content of a folder in memory, by slash-separated path. It implements fs.FS and does
// not change after Read, so that what was checked is what runs.
type Files map[string][]byte

// ReadFiles reads every regular file of fsys except folders and files that start with a dot, such as a
// working copy's .terraform/. It does read the lock file.
func ReadFiles(fsys fs.FS) (Files, error) {
	files := Files{}
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && name != "." && name != LockFile
		switch {
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir() || hidden:
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file; a module contains only files and folders", name)
		case len(files) == maxFiles:
			return fmt.Errorf("there are more than %d files; is this the folder of a module?", maxFiles)
		}
		content, err := readBounded(fsys, name)
		if err != nil {
			return err
		}
		files[name] = content
		if total += len(content); total > maxBytes {
			return fmt.Errorf("there are more than %d bytes; is this the folder of a module?", maxBytes)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the module's files: %w", err)
	}
	return files, nil
}

func readBounded(fsys fs.FS, name string) (content []byte, err error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	content, err = io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("%s has more than %d bytes; the files of a module must be small", name, maxFileBytes)
	}
	return content, nil
}

// Names returns the sorted paths for which keep is true.
func (f Files) Names(keep func(name string) bool) []string {
	var names []string
	for name := range f {
		if keep(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Only returns the files for which keep is true.
func (f Files) Only(keep func(name string) bool) Files {
	part := Files{}
	for name, content := range f {
		if keep(name) {
			part[name] = content
		}
	}
	return part
}

// Digest returns the hex SHA-256 over the sorted paths and contents.
func (f Files) Digest() string {
	hash := sha256.New()
	// Writing to a hash never fails. Lengths distinguish "ab"+"c" from "a"+"bc".
	part := func(content []byte) {
		_ = binary.Write(hash, binary.BigEndian, uint64(len(content)))
		_, _ = hash.Write(content)
	}
	for _, name := range f.Names(func(string) bool { return true }) {
		part([]byte(name))
		part(f[name])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Open implements fs.FS.
func (f Files) Open(name string) (fs.File, error) {
	archive := &txtar.Archive{}
	for name, content := range f {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: content})
	}
	files, err := txtar.FS(archive)
	if err != nil {
		return nil, err
	}
	return files.Open(name)
}
