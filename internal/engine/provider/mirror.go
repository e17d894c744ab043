package provider

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// manifestSuffix is appended to the path of a mirror to get that of its manifest.
const manifestSuffix = ".sha256"

// Mirror verifies the providers of a filesystem mirror against its manifest, a `sha256sum` file
// that lists them. The manifest is next to the mirror's folder, so that write access to the mirror
// does not imply write access to the manifest.
type Mirror struct {
	dir, manifest string
	// digests caches the digests of files, by the files' identities.
	digests sync.Map

	mu sync.Mutex
	// read is the last manifest that was read.
	read listing
}

// listing is what a manifest lists.
type listing struct {
	// content is nil if there is no manifest. listed has its digests by base name.
	content []byte
	listed  map[string][]string
	// identity is the identity of the manifest file.
	identity string
}

// OpenMirror reads the manifest of a mirror, if it has one. An empty dir means that there is no
// mirror.
func OpenMirror(dir string) (*Mirror, error) {
	if dir == "" {
		return &Mirror{}, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the provider mirror: %w", err)
	}
	m := &Mirror{dir: dir, manifest: real + manifestSuffix}
	_, err = m.current()
	return m, err
}

// current returns the manifest. It reads the file only if it has changed.
func (m *Mirror) current() (listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.manifest == "" {
		return listing{}, nil
	}
	info, err := os.Stat(m.manifest)
	if errors.Is(err, fs.ErrNotExist) {
		m.read = listing{}
		return m.read, nil
	}
	if err != nil {
		return m.read, fmt.Errorf("reading the manifest of the provider mirror: %w", err)
	}
	if identity := identityOf(m.manifest, info); identity != m.read.identity {
		read, err := readManifest(m.manifest)
		if err != nil {
			return m.read, err
		}
		read.identity, m.read = identity, read
	}
	return m.read, nil
}

// readManifest reads a file of sha256sum.
func readManifest(file string) (listing, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return listing{}, fmt.Errorf("reading the manifest of the provider mirror: %w", err)
	}
	read := listing{content: content, listed: map[string][]string{}}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		digest, name, _ := strings.Cut(text, " ")
		if raw, err := hex.DecodeString(digest); err != nil || len(raw) != sha256.Size || name == "" {
			return listing{}, fmt.Errorf("invalid line %d in %s: must be a SHA-256 and a path; recreate the file with sha256sum",
				number, file)
		}
		name = path.Base(strings.TrimLeft(name, " *"))
		read.listed[name] = append(read.listed[name], strings.ToLower(digest))
	}
	return read, nil
}

// Manifest returns the path and the content of the manifest. content is nil if there is none.
func (m *Mirror) Manifest() (file string, content []byte) {
	read, _ := m.current() // callers that need its content get the error elsewhere
	return m.manifest, read.content
}

// Stamp changes when a provider is added to the mirror or removed, or when the manifest changes. It
// only reads modification times of folders.
func (m *Mirror) Stamp() string {
	stamp := sha256.New()
	if read, _ := m.current(); read.identity != "" {
		fmt.Fprintln(stamp, read.identity)
	}
	// host, namespace, type, version, platform
	for _, depth := range []string{"", "*", "*/*", "*/*/*", "*/*/*/*", "*/*/*/*/*"} {
		folders, _ := filepath.Glob(filepath.Join(m.dir, filepath.FromSlash(depth))) // the pattern is valid
		for _, folder := range folders {
			if info, err := os.Stat(folder); err == nil {
				fmt.Fprintln(stamp, folder, info.ModTime().UnixNano())
			}
		}
	}
	return hex.EncodeToString(stamp.Sum(nil))
}

// Packages returns the mirror's files for a version of a provider and a platform such as
// linux_amd64: the binary, or an archive of it.
func (m *Mirror) Packages(address, version, platform string) ([]string, error) {
	name := "terraform-provider-" + path.Base(address)
	folder := filepath.Join(m.dir, filepath.FromSlash(address))
	found, err := filepath.Glob(filepath.Join(folder, version, platform, name+"*"))
	if err != nil {
		return nil, fmt.Errorf("finding the provider %s in the mirror: %w", address, err)
	}
	packed := filepath.Join(folder, name+"_"+version+"_"+platform+".zip")
	if _, err := os.Stat(packed); err == nil {
		found = append(found, packed)
	}
	return found, nil
}

// Check verifies every unpacked provider of the mirror if there is a manifest.
func (m *Mirror) Check() error {
	if read, err := m.current(); err != nil || read.content == nil {
		return err
	}
	// host, namespace, type, version, platform
	files, err := filepath.Glob(filepath.Join(m.dir, "*", "*", "*", "*", "*", "terraform-provider-*"))
	if err != nil {
		return fmt.Errorf("finding the providers of the mirror: %w", err)
	}
	for _, file := range files {
		if _, err := m.Vouches(file); err != nil {
			return err
		}
	}
	return nil
}

// Vouches reports whether the manifest lists a file with its current digest. It returns false
// without a manifest. With one, any other file is an error.
func (m *Mirror) Vouches(file string) (bool, error) {
	read, err := m.current()
	if err != nil || read.content == nil {
		return false, err
	}
	got, err := m.Digest(file)
	if err != nil {
		return false, err
	}
	want := read.listed[filepath.Base(file)]
	switch {
	case slices.Contains(want, got):
		return true, nil
	case len(want) == 0:
		return false, fmt.Errorf("provider %s (SHA-256 %s) is not listed in %s; remove it, or list it if you added it: "+
			"run sha256sum in the mirror", file, got, m.manifest)
	}
	return false, fmt.Errorf("provider %s does not match %s: want SHA-256 %s, got %s; restore the file, "+
		"or update the list if you replaced it: run sha256sum in the mirror", file, m.manifest, strings.Join(want,
		" or "), got)
}

// Digest returns the SHA-256 of a file. It reads a file again only if its device, inode, size or
// change time differs.
func (m *Mirror) Digest(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("finding a provider: %w", err)
	}
	identity := identityOf(file, info)
	read, _ := m.digests.LoadOrStore(identity, sync.OnceValues(func() (string, error) { return digestOf(file) }))
	digest, err := read.(func() (string, error))()
	if err != nil {
		m.digests.Delete(identity) // it may be readable the next time
		return "", fmt.Errorf("reading the provider %s: %w", file, err)
	}
	return digest, nil
}

func identityOf(file string, info fs.FileInfo) string {
	return fmt.Sprintf("%s %d %d", cmp.Or(inode(info), file), info.Size(), info.ModTime().UnixNano())
}

func digestOf(file string) (string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer opened.Close() //nolint:errcheck // it was only read
	hash := sha256.New()
	if _, err := io.Copy(hash, opened); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
