package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// systemFiles are where systems keep the certificates that they trust, SSL_CERT_FILE of the
// manager's own first. The first that is there counts.
func systemFiles() []string {
	files := []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
	}
	if own := os.Getenv("SSL_CERT_FILE"); own != "" {
		return append([]string{own}, files...)
	}
	return files
}

// bundle writes the file with the CAs that engines trust. A program with such a file trusts nothing
// else, so it includes the system's CAs. The file is named after its content: a file in use never
// changes.
type bundle struct {
	// dir is the bundle's own folder. The first existing file of system has the system's CAs.
	dir    string
	system []string
	// now is the file that was returned last, before the one that it replaced.
	now, before string
}

// file returns the path of a file that has the authorities and the system's; none when there are no
// authorities.
func (b *bundle) file(authorities string) (string, error) {
	if authorities == "" {
		return "", nil
	}
	content, err := b.join(authorities)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(b.dir, hex.EncodeToString(sum[:8])+".pem")
	if _, err := os.Stat(path); err == nil && path == b.now {
		return path, nil
	}
	if err := b.write(path, content); err != nil {
		return "", fmt.Errorf("writing the certificate authorities: %w", err)
	}
	if path != b.now {
		b.now, b.before = path, b.now
	}
	return path, b.tidy()
}

func (b *bundle) join(authorities string) ([]byte, error) {
	for _, file := range b.system {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the system's certificate authorities: %w", err)
		}
		return append(append(bytes.TrimSpace(content), '\n'), authorities...), nil
	}
	return []byte(authorities), nil
}

// write puts the content in place in one step.
func (b *bundle) write(path string, content []byte) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// tidy removes files that neither new runs nor those from before the last change use.
func (b *bundle) tidy() error {
	files, err := os.ReadDir(b.dir)
	if err != nil {
		return fmt.Errorf("tidying the certificate authorities: %w", err)
	}
	for _, file := range files {
		path := filepath.Join(b.dir, file.Name())
		if path == b.now || path == b.before {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("tidying the certificate authorities: %w", err)
		}
	}
	return nil
}
