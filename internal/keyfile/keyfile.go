// Package keyfile reads the keys of a flag that takes a file with one key, or a folder of several in the order of their names.
package keyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxKeys bounds the keys of a folder: one is in use, and a few more are being replaced.
const maxKeys = 16

// Key is what one file holds.
type Key struct {
	// File is its path.
	File string
	// Content as it is in the file, and at most a byte more than was asked for.
	Content []byte
}

// Read returns the key in a file, or those in the files of a folder, by their names in order. Of a file that has more than limit bytes, one
// byte more is returned, for the caller to refuse it.
func Read(name string, limit int64) ([]Key, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	files := []string{name}
	if info.IsDir() {
		if files, err = filesIn(name); err != nil {
			return nil, err
		}
	}
	keys := make([]Key, 0, len(files))
	for _, file := range files {
		content, err := read(file, limit)
		if err != nil {
			return nil, err
		}
		keys = append(keys, Key{File: file, Content: content})
	}
	return keys, nil
}

// filesIn returns the files of a folder, without what a mounted Secret has beside its keys.
func filesIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		name := filepath.Join(folder, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no file; keep nothing but keys in the folder", name)
		}
		files = append(files, name)
	}
	if len(files) == 0 || len(files) > maxKeys {
		return nil, fmt.Errorf("%s has %d keys; keep 1 to %d there", folder, len(files), maxKeys)
	}
	return files, nil
}

func read(name string, limit int64) (content []byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return io.ReadAll(io.LimitReader(file, limit+1))
}
