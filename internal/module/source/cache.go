package source

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
)

// signatureSuffix ends the file name of an artifact's signature.
const signatureSuffix = ".signature"

// cache stores content as files named by their digest. It is not trusted: a file without the digest
// of its name counts as missing. It only saves downloads, so failures are only logged.
type cache struct {
	dir    string
	logger logr.Logger
}

func (c cache) path(digest string) string {
	return filepath.Join(c.dir, strings.ReplaceAll(digest, ":", "-"))
}

func (c cache) get(digest string) ([]byte, bool) {
	if c.dir == "" {
		return nil, false
	}
	content, err := readFile(c.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err == nil {
		err = checkDigest(content, digest)
	}
	if err != nil {
		c.logger.Info("Broken entry in the cache of provider modules; fetching it again", "digest", digest,
			"error", err.Error())
		return nil, false
	}
	return content, true
}

func (c cache) put(digest string, content []byte) {
	if c.dir == "" {
		return
	}
	if err := c.write(c.path(digest), content); err != nil {
		c.logger.Info("Cannot cache a provider module; a restart must fetch it again", "digest", digest, "error", err.Error())
	}
}

// signature returns the cached signature of an artifact, which is not verified yet.
func (c cache) signature(digest string) (signed, bool) {
	var kept signed
	if c.dir == "" {
		return kept, false
	}
	content, err := readSmall(c.path(digest)+signatureSuffix, 2*maxPayloadBytes)
	ok := err == nil && json.Unmarshal(content, &kept) == nil
	return kept, ok
}

func (c cache) putSignature(digest string, one signed) {
	content, err := json.Marshal(one)
	if err == nil && c.dir != "" {
		err = c.write(c.path(digest)+signatureSuffix, content)
	}
	if err != nil {
		c.logger.Info("Cannot cache the signature of a provider module; a restart must fetch it again", "digest", digest,
			"error", err.Error())
	}
}

// write creates the file atomically. Concurrent writes of the same file may corrupt it, which
// reading detects.
func (c cache) write(path string, content []byte) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	unfinished := path + ".new"
	if err := os.WriteFile(unfinished, content, 0o600); err != nil {
		return errors.Join(err, os.Remove(unfinished))
	}
	return os.Rename(unfinished, path)
}
