package module

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
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
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if content, ok := f[name]; ok {
		return &openFile{Reader: bytes.NewReader(content),
			info: fileInfo{name: path.Base(name), size: int64(len(content))}}, nil
	}
	entries := f.entries(name)
	if len(entries) == 0 && name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openDir{info: fileInfo{name: path.Base(name), dir: true}, entries: entries}, nil
}

// entries returns the direct children of the folder, sorted by name.
func (f Files) entries(folder string) []fs.DirEntry {
	prefix := folder + "/"
	if folder == "." {
		prefix = ""
	}
	found := map[string]fileInfo{}
	for name, content := range f {
		rest, inside := strings.CutPrefix(name, prefix)
		if !inside {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper {
			found[first] = fileInfo{name: first, dir: true}
		} else {
			found[rest] = fileInfo{name: rest, size: int64(len(content))}
		}
	}
	entries := make([]fs.DirEntry, 0, len(found))
	for _, info := range found {
		entries = append(entries, fs.FileInfoToDirEntry(info))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

type fileInfo struct {
	name string
	size int64
	dir  bool
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.dir }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type openFile struct {
	*bytes.Reader
	info fileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	info    fileInfo
	entries []fs.DirEntry
	next    int
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: fs.ErrInvalid}
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.entries[d.next:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	d.next += len(rest)
	return slices.Clone(rest), nil
}
