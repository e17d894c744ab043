package provider

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Merge adds the packages of a mirror to another folder, unpacked, and lists all files of that one in
// its manifest. Packages that it has stay. With link, it gets links instead of copies.
func Merge(from, to string, link bool) error {
	unpacked, err := filepath.Glob(filepath.Join(from, "*", "*", "*", "*", "*"))
	if err != nil {
		return fmt.Errorf("reading the mirror %s: %w", from, err)
	}
	packed, err := filepath.Glob(filepath.Join(from, "*", "*", "*", "terraform-provider-*.zip"))
	if err != nil {
		return fmt.Errorf("reading the mirror %s: %w", from, err)
	}
	if len(unpacked)+len(packed) == 0 {
		return fmt.Errorf("no provider in %s; fill it with 'tofu providers mirror'", from)
	}
	for _, source := range unpacked {
		put := func(target string) error { return os.CopyFS(target, os.DirFS(source)) }
		if link {
			put = func(target string) error { return os.Symlink(source, target) }
		}
		if err := add(filepath.Join(to, strings.TrimPrefix(source, filepath.Clean(from))), put); err != nil {
			return err
		}
	}
	for _, source := range packed {
		folder := strings.TrimPrefix(filepath.Dir(source), filepath.Clean(from))
		name := strings.TrimPrefix(filepath.Base(source), "terraform-provider-"+filepath.Base(folder)+"_")
		version, platform, _ := strings.Cut(strings.TrimSuffix(name, ".zip"), "_")
		put := func(target string) error { return unpack(source, target) }
		if err := add(filepath.Join(to, folder, version, platform), put); err != nil {
			return err
		}
	}
	return writeManifest(to)
}

func unpack(source, target string) error {
	archive, err := zip.OpenReader(source)
	if err != nil {
		return err
	}
	return errors.Join(os.CopyFS(target, archive), archive.Close())
}

// add puts a package under its name once it is complete.
func add(target string, put func(string) error) error {
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	staging := filepath.Join(filepath.Dir(target), ".adding")
	err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.RemoveAll(staging))
	if err == nil {
		err = put(staging)
	}
	if err == nil {
		err = os.Rename(staging, target)
	}
	if err != nil {
		return fmt.Errorf("adding the provider %s: %w", target, err)
	}
	return nil
}

// writeManifest lists the unpacked providers of a mirror, which its owner trusts.
func writeManifest(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*", "*", "terraform-provider-*"))
	if err != nil {
		return fmt.Errorf("finding the providers of the mirror: %w", err)
	}
	var lines bytes.Buffer
	for _, file := range slices.Sorted(slices.Values(files)) {
		digest, err := digestOf(file)
		if err != nil {
			return fmt.Errorf("reading the provider %s: %w", file, err)
		}
		fmt.Fprintf(&lines, "%s  %s\n", digest, strings.TrimPrefix(file, dir+string(filepath.Separator)))
	}
	staging := dir + manifestSuffix + ".new"
	if err := os.WriteFile(staging, lines.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the manifest of the provider mirror: %w", err)
	}
	if err := os.Rename(staging, dir+manifestSuffix); err != nil {
		return fmt.Errorf("writing the manifest of the provider mirror: %w", err)
	}
	return nil
}
