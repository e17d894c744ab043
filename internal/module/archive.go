package module

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxArchiveBytes limits an archive, both packed and unpacked: the size of a module, and the same
// again for headers and for ignored files, such as those whose names start with a dot.
const MaxArchiveBytes = 2 * maxBytes

// maxNameBytes limits the path of a file, so that it fits into every file system below a folder of
// the operator.
const maxNameBytes = 255

// WriteArchive packs the module in the root of fsys as a tar.gz for [ReadArchive]. It packs what
// [Read] reads: regular files except those that start with a dot other than the lock file, within
// the contract's limits. The archive is reproducible.
func WriteArchive(w io.Writer, fsys fs.FS) error {
	files, err := ReadFiles(fsys)
	if err != nil {
		return err
	}
	names := files.Names(func(string) bool { return true })
	for _, name := range names {
		if err := checkArchiveName(name); err != nil {
			return fmt.Errorf("packing the module: %w", err)
		}
	}
	compressed := gzip.NewWriter(w)
	packed := tar.NewWriter(compressed)
	for _, name := range names {
		// Times and owners stay zero: they are not part of a module.
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644}
		if err := packed.WriteHeader(header); err != nil {
			return fmt.Errorf("packing the module's %s: %w", name, err)
		}
		if _, err := packed.Write(files[name]); err != nil {
			return fmt.Errorf("packing the module's %s: %w", name, err)
		}
	}
	if err := errors.Join(packed.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("packing the module: %w", err)
	}
	return nil
}

// ReadArchive unpacks a tar.gz into memory and returns the module's files. It does not trust the
// archive: it rejects paths that lead out, links, devices and duplicate names, and reads no more
// than the contract's limits allow. It strips a single top-level folder, and skips names that start
// with a dot, except the lock file.
func ReadArchive(r io.Reader) (fs.FS, error) {
	files, err := readArchive(r)
	if err != nil {
		return nil, fmt.Errorf("reading the module's archive: %w", err)
	}
	return files, nil
}

func readArchive(r io.Reader) (Files, error) {
	compressed, err := gzip.NewReader(&boundedReader{reader: r, left: MaxArchiveBytes, what: "packed"})
	if err != nil {
		return nil, unreadable(err)
	}
	content := &boundedReader{reader: compressed, left: MaxArchiveBytes, what: "unpacked"}
	unpacking := unpacking{archive: tar.NewReader(content), files: Files{}, folders: map[string]bool{}}
	for {
		header, err := unpacking.archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, unreadable(err)
		}
		if err := unpacking.take(header); err != nil {
			return nil, err
		}
	}
	// The checksum is at the very end.
	if _, err := io.Copy(io.Discard, content); err != nil {
		return nil, unreadable(err)
	}
	if len(unpacking.files) == 0 {
		return nil, errors.New("it contains no files; pack the folder of a module")
	}
	files := unpacking.files.withoutTop()
	return files.Only(func(name string) bool { return name == LockFile || path.Base(name) != LockFile }), nil
}

// unreadable describes an invalid archive, unless it is only too large.
func unreadable(err error) error {
	var large *tooLargeError
	if errors.As(err, &large) {
		return large
	}
	return fmt.Errorf("not a complete tar.gz: %w; pack the module's folder again, or fetch the archive again", err)
}

// unpacking is an archive while it is read.
type unpacking struct {
	archive *tar.Reader
	files   Files
	// folders are those that contain files or have their own entry.
	folders map[string]bool
	bytes   int
}

// take reads one entry.
func (u *unpacking) take(header *tar.Header) error {
	if header.Typeflag == tar.TypeXGlobalHeader { // a comment on the whole archive, such as its commit
		return nil
	}
	if err := checkArchiveName(header.Name); err != nil {
		return err
	}
	folder, name := header.Typeflag == tar.TypeDir, path.Clean(header.Name)
	if folder && name == "." || isHidden(name) {
		return nil
	}
	switch {
	case folder:
		return u.addFolder(name)
	case header.Typeflag != tar.TypeReg:
		return fmt.Errorf("%q is a link, a device, or something else that is not a regular file; a module contains only files and folders", name)
	}
	return u.addFile(name)
}

func (u *unpacking) addFolder(name string) error {
	for ; name != "."; name = path.Dir(name) {
		if _, taken := u.files[name]; taken {
			return fmt.Errorf("%q is both a file and a folder; pack the module's folder again", name)
		}
		u.folders[name] = true
	}
	return nil
}

func (u *unpacking) addFile(name string) error {
	if _, twice := u.files[name]; twice {
		return fmt.Errorf("%q is in the archive twice; pack each file once", name)
	}
	if u.folders[name] {
		return fmt.Errorf("%q is both a file and a folder; pack the module's folder again", name)
	}
	if err := u.addFolder(path.Dir(name)); err != nil {
		return err
	}
	if len(u.files) == maxFiles {
		return fmt.Errorf("there are more than %d files; is this the archive of one module?", maxFiles)
	}
	content, err := io.ReadAll(io.LimitReader(u.archive, maxFileBytes+1))
	if err != nil {
		return unreadable(err)
	}
	if len(content) > maxFileBytes {
		return fmt.Errorf("%q has more than %d bytes; the files of a module must be small", name, maxFileBytes)
	}
	if u.bytes += len(content); u.bytes > maxBytes {
		return fmt.Errorf("there are more than %d bytes of files; is this the archive of one module?", maxBytes)
	}
	u.files[name] = content
	return nil
}

// checkArchiveName rejects paths that lead out of the module's folder, or that mean different
// places on different systems.
func checkArchiveName(name string) error {
	unusual := func(r rune) bool { return r == '\\' || r == utf8.RuneError || unicode.IsControl(r) }
	switch {
	case len(name) > maxNameBytes:
		return fmt.Errorf("a path has more than %d bytes and starts with %q; give the file a shorter name",
			maxNameBytes, name[:64])
	case path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), ".."):
		return fmt.Errorf("the path %q leads out of the module's folder; pack from within the folder, without links", name)
	case strings.ContainsFunc(name, unusual):
		return fmt.Errorf("the path %q contains a backslash, a control character or invalid UTF-8; rename the file", name)
	}
	return nil
}

// isHidden reports whether a path is skipped like Read skips it: any part of it starts with a dot.
// The lock file is not skipped, even below a folder that may turn out to contain everything.
func isHidden(name string) bool {
	parts := strings.Split(name, "/")
	if last := len(parts) - 1; last < 2 && parts[last] == LockFile {
		parts = parts[:last]
	}
	return slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, ".") })
}

// withoutTop strips the folder that contains every file, if any.
func (f Files) withoutTop() Files {
	var top string
	for name := range f {
		first, _, nested := strings.Cut(name, "/")
		if !nested || top != "" && top != first {
			return f
		}
		top = first
	}
	stripped := Files{}
	for name, content := range f {
		stripped[strings.TrimPrefix(name, top+"/")] = content
	}
	return stripped
}

// tooLargeError means that an archive exceeds a limit.
type tooLargeError struct{ what string }

// Error implements error.
func (e *tooLargeError) Error() string {
	return fmt.Sprintf("it has more than %d bytes %s; is this the archive of one module?", MaxArchiveBytes, e.what)
}

// boundedReader returns an error if the limit is exceeded.
type boundedReader struct {
	reader io.Reader
	left   int64
	what   string
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	// Read one byte more to distinguish EOF from too much data.
	n, err := b.reader.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, &tooLargeError{what: b.what}
	}
	return n, err
}
