package preview

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stdin is the file name of standard input.
const Stdin = "-"

// File is an input.
type File struct {
	// Name is the path as given, or as found in a folder.
	Name    string
	Content []byte
}

// maxFile bounds a file; an object in a cluster has at most 1.5 MiB.
const maxFile = 64 << 20

// manifests are the extensions of the files to read from folders.
var manifests = []string{".yaml", ".yml", ".json"}

// ReadFiles reads files, the manifests in folders, and standard input if named as Stdin. It reads each file once. The
// error joins all failures.
func ReadFiles(names []string, recursive bool, stdin io.Reader) ([]File, error) {
	var files []File
	var failed []error
	seen := map[string]bool{}
	for _, name := range names {
		found, err := expand(name, recursive)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, path := range found {
			if seen[filepath.Clean(path)] {
				continue
			}
			seen[filepath.Clean(path)] = true
			content, err := readFile(path, stdin)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			files = append(files, File{Name: path, Content: content})
		}
	}
	return files, errors.Join(failed...)
}

// expand returns the file, or the manifests in the folder.
func expand(name string, recursive bool) ([]string, error) {
	if name == Stdin {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w; name a file, a folder, or %s for the standard input", err, Stdin)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var found []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(manifests, filepath.Ext(path)):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the folder %s: %w", name, err)
	}
	if len(found) == 0 {
		fix := "name another"
		if !recursive {
			fix += ", or add -R for the folders in it"
		}
		return nil, fmt.Errorf("reading the folder %s: it has no file that ends in %s; %s", name,
			strings.Join(manifests, ", "), fix)
	}
	return found, nil
}

func readFile(name string, stdin io.Reader) (content []byte, err error) {
	from := stdin
	if name != Stdin {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		defer file.Close() //nolint:errcheck // read only
		from = file
	}
	content, err = io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("it has more than %d MiB", maxFile>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return content, nil
}
