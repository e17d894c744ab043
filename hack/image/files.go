package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// owner is the user that the image runs as, and its group: nobody in particular, but not root.
const owner = 65532

// file is a file, folder or link of the image.
type file struct {
	// path is from the root of the image, without a slash at the start.
	path string
	// mode has the type, too.
	mode fs.FileMode
	// owned says that it belongs to owner, else to root.
	owned bool
	// from is the file on this machine that has the content; empty when content has it.
	from    string
	content []byte
	// target is what a link points to.
	target string
}

// layer is a part of the image that changes on its own.
type layer struct {
	name  string
	files []file
}

func text(path, content string) file { return file{path: path, mode: 0o644, content: []byte(content)} }

func program(path, from string) file { return file{path: path, mode: 0o755, from: from} }

func link(path, target string) file {
	return file{path: path, mode: fs.ModeSymlink | 0o777, target: target}
}

// open returns the content of a regular file.
func (f file) open() (io.ReadCloser, int64, error) {
	if f.from == "" {
		return io.NopCloser(bytes.NewReader(f.content)), int64(len(f.content)), nil
	}
	opened, err := os.Open(f.from)
	if err != nil {
		return nil, 0, fmt.Errorf("reading what becomes /%s: %w", f.path, err)
	}
	info, err := opened.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, opened.Close())
	}
	return opened, info.Size(), nil
}

// newLayer returns a layer with its files in order, and with all folders that they are in.
func newLayer(name string, files ...file) layer {
	known := map[string]bool{}
	for _, f := range files {
		known[f.path] = true
	}
	all := slices.Clone(files)
	for _, f := range files {
		for folder := path.Dir(f.path); folder != "." && !known[folder]; folder = path.Dir(folder) {
			known[folder] = true
			all = append(all, file{path: folder, mode: fs.ModeDir | 0o755})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return layer{name: name, files: all}
}

// system is what any program expects of the system below it.
func system() layer {
	return newLayer(
		"system",
		file{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		text("etc/passwd", fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/%s:/sbin/nologin\n", owner, owner, workFolder)),
		text("etc/group", fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", owner)),
		text("etc/nsswitch.conf", "hosts: files dns\n"),
		text(authoritiesFile, authorities()),
	)
}

// workFolder is where the manager keeps what it works on, and the home of the user.
const workFolder = "var/lib/machine-iac"

// home is the folder that the user may write to. The Dockerfile copies it by itself, since it has another owner than all else.
func home() layer {
	return newLayer("home", file{path: workFolder, mode: fs.ModeDir | 0o755, owned: true})
}

// stage writes layers into folders that are called like them. Owners are not set, which only root could.
func stage(folder string, layers []layer, created time.Time) error {
	if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty; name a new folder", folder)
	}
	for _, l := range layers {
		root := filepath.Join(folder, l.name)
		if err := os.MkdirAll(root, 0o755); err != nil {
			return err
		}
		for _, f := range l.files {
			if err := f.write(filepath.Join(root, filepath.FromSlash(f.path))); err != nil {
				return fmt.Errorf("writing layer %s: %w", l.name, err)
			}
		}
		for _, f := range slices.Backward(l.files) { // a folder's time changes with what is put into it
			if f.mode&fs.ModeSymlink != 0 {
				continue
			}
			if err := os.Chtimes(filepath.Join(root, filepath.FromSlash(f.path)), created, created); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f file) write(to string) error {
	switch {
	case f.mode&fs.ModeSymlink != 0:
		return os.Symlink(f.target, to)
	case f.mode.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		return os.Chmod(to, f.mode)
	}
	content, _, err := f.open()
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it was only read
	written, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(written, content)
	return errors.Join(err, written.Close(), os.Chmod(to, f.mode))
}
