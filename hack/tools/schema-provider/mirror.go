package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// registries are where OpenTofu and Terraform look for providers.
var registries = []string{"registry.opentofu.org", "registry.terraform.io"}

// mirror makes a filesystem mirror with every record for this platform, all files of which are this program, and its
// manifest beside it: lock files have the checksums of the real providers. What is there stays.
func mirror(dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	var manifest strings.Builder
	files, err := fs.Glob(records, "schemas/*.json")
	if err != nil {
		return err
	}
	for _, file := range files {
		name, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "-")
		schema, err := readRecord(name, version)
		if err != nil {
			return err
		}
		_, source, _ := strings.Cut(schema.Address, "/")
		for _, registry := range registries {
			target := filepath.Join(dir, registry, filepath.FromSlash(source), version, runtime.GOOS+"_"+runtime.GOARCH,
				"terraform-provider-"+name+"_v"+version)
			if err := place(program, target); err != nil {
				return fmt.Errorf("making the mirror %s: %w", dir, err)
			}
			fmt.Fprintf(&manifest, "%x  %s\n", sum, filepath.Base(target))
			program = target // later ones are links to it: it is on the mirror's own file system
		}
	}
	if there, err := os.ReadFile(dir + ".sha256"); err == nil && string(there) == manifest.String() {
		return nil // another process may be reading it
	}
	return replace(dir+".sha256", strings.NewReader(manifest.String()), 0o644)
}

// place links a program, or copies it from another file system. An engine follows no symbolic link out of a mirror.
func place(program, target string) error {
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // it holds no secret
		return err
	}
	if err := os.Link(program, target); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it was only read
	return replace(target, from, 0o755)
}

// replace writes a file that is complete whenever it is there.
func replace(file string, content io.Reader, mode fs.FileMode) error {
	to, err := os.CreateTemp(filepath.Dir(file), ".new-")
	if err != nil {
		return err
	}
	_, err = io.Copy(to, content)
	if err := errors.Join(err, to.Chmod(mode), to.Close()); err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return os.Rename(to.Name(), file)
}
