package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// registries are where OpenTofu and Terraform look for providers.
var registries = []string{"registry.opentofu.org", "registry.terraform.io"}

// mirror makes a filesystem mirror with every record for this platform, all files of which are this program, and its
// manifest beside it: lock files have the checksums of the real providers. A file with other content is replaced.
func mirror(dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	files, err := fs.Glob(records, "schemas/*.json")
	if err != nil {
		return err
	}
	first := ""
	var manifest strings.Builder
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
			if err := place(content, first, target); err != nil {
				return fmt.Errorf("making the mirror %s: %w", dir, err)
			}
			first = cmp.Or(first, target)
			fmt.Fprintf(&manifest, "%x  %s\n", sha256.Sum256(content), filepath.Base(target))
		}
	}
	if there, err := os.ReadFile(dir + ".sha256"); err == nil && string(there) == manifest.String() {
		return nil // another process may be reading it
	}
	return replace(dir+".sha256", []byte(manifest.String()), 0o644)
}

// place writes a file of the mirror, as a link to the first one if there is one. An engine follows no symbolic link out of a
// mirror.
func place(content []byte, first, target string) error {
	if first == "" {
		if there, err := os.ReadFile(target); err == nil && bytes.Equal(there, content) {
			return nil
		}
	} else if linked(first, target) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // it holds no secret
		return err
	}
	if first != "" && os.Link(first, target) == nil {
		return nil
	}
	return replace(target, content, 0o755)
}

func linked(first, target string) bool {
	one, err := os.Stat(first)
	other, otherErr := os.Stat(target)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// replace writes a file that is complete whenever it is there.
func replace(file string, content []byte, mode fs.FileMode) error {
	to, err := os.CreateTemp(filepath.Dir(file), ".new-")
	if err != nil {
		return err
	}
	_, err = to.Write(content)
	if err := errors.Join(err, to.Chmod(mode), to.Close()); err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return os.Rename(to.Name(), file)
}
