package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

const (
	manifestName = "machine.yaml"
	licence      = "LICENSE"
	// maxProgram bounds what is unpacked.
	maxProgram = 1 << 30
	executable = 0o111
)

// manifest is what is held to the archives of krew's manifest.
type manifest struct {
	Spec struct {
		Version   string     `json:"version"`
		Platforms []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	Selector struct {
		MatchLabels struct {
			OS   string `json:"os"`
			Arch string `json:"arch"`
		} `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// check returns the archives that are as the manifest in a folder says: one for each platform, with its checksum, and in it the program
// built of a package for that platform, in that version. The error lists all others.
func check(dir, program string) (good []string, err error) {
	content, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	var m manifest
	if err := yaml.Unmarshal(content, &m); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, manifestName), err)
	}
	if len(m.Spec.Platforms) == 0 {
		return nil, fmt.Errorf("%s names no platform", filepath.Join(dir, manifestName))
	}
	found, err := filepath.Glob(filepath.Join(dir, m.Spec.Platforms[0].Bin+"-*.tar.gz"))
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, one := range m.Spec.Platforms {
		archive := filepath.Join(dir, path.Base(one.URI))
		found = slices.DeleteFunc(found, func(name string) bool { return name == archive })
		if err := one.check(archive, program, m.Spec.Version); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", archive, err))
			continue
		}
		good = append(good, archive)
	}
	for _, archive := range found {
		wrong = append(wrong, fmt.Errorf("%s: the manifest does not name it; remove it, or add its platform", archive))
	}
	return good, errors.Join(wrong...)
}

// check holds one archive to what the manifest says of it.
func (p platform) check(archive, program, version string) error {
	content, err := os.ReadFile(archive)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it is not there; build it for %s/%s", p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch)
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != p.SHA256 {
		return fmt.Errorf("its checksum is %s, and in the manifest %s", got, p.SHA256)
	}
	files, err := unpack(content)
	if err != nil {
		return fmt.Errorf("unpacking it: %w", err)
	}
	var names []string
	for _, one := range files {
		names = append(names, one.name)
	}
	if want := []string{p.Bin, licence}; !slices.Equal(names, want) {
		return fmt.Errorf("it has the files %q; want %q", names, want)
	}
	if mode := files[0].mode; mode&executable != executable {
		return fmt.Errorf("%s has the mode %v; anybody must be able to run it", p.Bin, mode)
	}
	return p.checkProgram(files[0].content, program, version)
}

// checkProgram holds a program to its package, its version and the platform.
func (p platform) checkProgram(content []byte, program, version string) error {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("reading what %s was built of: %w", p.Bin, err)
	}
	if info.Path != program {
		return fmt.Errorf("%s is built of %s; want %s", p.Bin, info.Path, program)
	}
	built := map[string]string{}
	for _, setting := range info.Settings {
		built[setting.Key] = setting.Value
	}
	want := map[string]string{"GOOS": p.Selector.MatchLabels.OS, "GOARCH": p.Selector.MatchLabels.Arch, "CGO_ENABLED": "0"}
	for _, name := range []string{"GOOS", "GOARCH", "CGO_ENABLED"} {
		if built[name] != want[name] {
			return fmt.Errorf("%s is built with %s=%s; want %s", p.Bin, name, built[name], want[name])
		}
	}
	if version == "" || !bytes.Contains(content, []byte(version)) {
		return fmt.Errorf("%s does not bear the version %q", p.Bin, version)
	}
	return nil
}

// file is one of an archive.
type file struct {
	name    string
	mode    fs.FileMode
	content []byte
}

func unpack(archive []byte) ([]file, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	var files []file
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(io.LimitReader(reader, maxProgram))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: header.Name, mode: header.FileInfo().Mode(), content: content})
	}
}
