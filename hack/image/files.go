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

// owner is the user and group that the image runs as.
const owner = 65532

// file is a file, folder or link of the image.
type file struct {
	// path is relative to the image's root, without a leading slash.
	path string
	// mode includes the type.
	mode fs.FileMode
	// owned is true for a file of owner, false for root's.
	owned bool
	// from is the local file with the content, or empty if content has it.
	from    string
	content []byte
	// target is a link's target.
	target string
}

// layer is a part of the image that changes independently.
type layer struct {
	name  string
	files []file
}

func text(path, content string) file { return file{path: path, mode: 0o644, content: []byte(content)} }

func program(path, from string) file { return file{path: path, mode: 0o755, from: from} }

func link(path, target string) file {
	return file{path: path, mode: fs.ModeSymlink | 0o777, target: target}
}

func (f file) open() (io.ReadCloser, int64, error) {
	if f.from == "" {
		return io.NopCloser(bytes.NewReader(f.content)), int64(len(f.content)), nil
	}
	opened, err := os.Open(f.from)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the source of /%s: %w", f.path, err)
	}
	info, err := opened.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, opened.Close())
	}
	return opened, info.Size(), nil
}

// newLayer returns a layer of sorted files with all their parent folders.
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

// system returns what every program expects of a system.
func system() layer {
	return newLayer(
		"system",
		file{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		text("etc/passwd", fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/%s:/sbin/nologin\n",
			owner, owner, workFolder)),
		text("etc/group", fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", owner)),
		text("etc/nsswitch.conf", "hosts: files dns\n"),
		text(authoritiesFile, authorities()),
	)
}

// workFolder is the manager's work folder and the user's home.
const workFolder = "var/lib/machine-iac"

// home returns the folder that the user may write to. The Dockerfile copies it separately because its owner differs.
func home() layer {
	return newLayer("home", file{path: workFolder, mode: fs.ModeDir | 0o755, owned: true})
}

// stage writes each layer into a folder of its name. It does not set owners, which only root could.
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
		for _, f := range slices.Backward(l.files) { // writing a file changes its folder's time
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
