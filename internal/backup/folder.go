package backup

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
	// maxFile bounds what is read of one file.
	maxFile = 256 << 20
)

// Folder is the folder of a backup. It never follows symbolic links.
type Folder struct {
	root *os.Root
	name string
}

// CreateFolder opens a folder for writing, and creates it if missing. It rejects a folder that
// others can access.
func CreateFolder(name string) (*Folder, error) {
	if err := os.MkdirAll(name, folderMode); err != nil {
		return nil, fmt.Errorf("making the folder of the backup: %w", err)
	}
	seen, err := os.Lstat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("opening the folder of the backup: %w", err)
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a symbolic link: name the folder itself", name)
	case seen.Mode().Perm()&^folderMode != 0:
		return nil,
			fmt.Errorf("others may enter the folder %s, and a backup holds secrets: chmod 700 it, or name one that is not there yet", name)
	}
	folder, err := OpenFolder(name)
	if err != nil {
		return nil, err
	}
	if opened, err := folder.root.Stat("."); err != nil || !os.SameFile(seen, opened) {
		return nil, errors.Join(fmt.Errorf("the folder %s was exchanged while it was opened", name), err, folder.Close())
	}
	return folder, nil
}

// OpenFolder opens a folder to read from.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the backup: %w", err)
	}
	return &Folder{root: root, name: name}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// differsError means that a file exists with other content.
type differsError struct{ name string }

// Error implements error.
func (e *differsError) Error() string {
	return fmt.Sprintf("%s is there already and differs; name another folder, or replace it with --force", e.name)
}

// same reports whether a file exists with the content. Other content is a *differsError.
func (f *Folder) same(name string, content []byte) (bool, error) {
	have, err := f.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case bytes.Equal(have, content):
		return true, nil
	}
	return false, &differsError{name: path.Join(f.name, name)}
}

// write writes a file atomically, replacing an existing one.
func (f *Folder) write(name string, content []byte) error {
	if err := f.makeFolders(path.Dir(name)); err != nil {
		return err
	}
	unique := make([]byte, 8)
	_, _ = rand.Read(unique) // never fails: it crashes the process instead
	temporary := path.Join(path.Dir(name), ".writing-"+hex.EncodeToString(unique))
	err := f.fill(temporary, content)
	if err == nil {
		err = f.root.Rename(temporary, name)
	}
	if err != nil {
		_ = f.root.Remove(temporary) // the first error counts
		return fmt.Errorf("writing %s: %w", path.Join(f.name, name), err)
	}
	return f.sync(path.Dir(name))
}

// fill makes a file, which is not there, with the content.
func (f *Folder) fill(name string, content []byte) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// remove removes a file that may be there.
func (f *Folder) remove(name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", path.Join(f.name, name), err)
	}
	return nil
}

// sync makes the names in a folder last.
func (f *Folder) sync(name string) error {
	folder, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// makeFolders creates the folders of a path. Existing ones must be folders, not links.
func (f *Folder) makeFolders(name string) error {
	at := "."
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		if err := f.root.Mkdir(at, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making the folder %s: %w", path.Join(f.name, at), err)
		}
		seen, err := f.root.Lstat(at)
		if err != nil || !seen.IsDir() {
			return errors.Join(fmt.Errorf("%s is there and is no folder; remove it, or name another folder for the backup",
				path.Join(f.name, at)), err)
		}
	}
	return nil
}

// read reads a regular file, not a link.
func (f *Folder) read(name string) ([]byte, error) {
	seen, err := f.root.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path.Join(f.name, name), err)
	}
	if !seen.Mode().IsRegular() {
		return nil, fmt.Errorf("reading %s: it is no plain file", path.Join(f.name, name))
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path.Join(f.name, name), err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	if opened, err := file.Stat(); err != nil || !os.SameFile(seen, opened) {
		return nil, errors.Join(fmt.Errorf("reading %s: it was exchanged while it was opened", path.Join(f.name, name)), err)
	}
	return readAll(file, path.Join(f.name, name))
}

// readAll reads a file within bounds.
func readAll(from io.Reader, name string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("reading %s: it is larger than %d bytes, the limit of a file in a backup", name, maxFile)
	}
	return content, nil
}
