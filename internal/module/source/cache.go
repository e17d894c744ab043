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

// signatureSuffix is what the name of an artifact's signature ends with.
const signatureSuffix = ".signature"

// cache keeps contents as files that are named by their digest. Nothing in it is trusted: what does not have the digest of its name is
// not there. It only saves downloads, so that its failures are logged and no more.
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
		c.logger.Info("An entry in the cache of provider modules is broken and is fetched again", "digest", digest, "error", err.Error())
		return nil, false
	}
	return content, true
}

func (c cache) put(digest string, content []byte) {
	if c.dir == "" {
		return
	}
	if err := c.write(c.path(digest), content); err != nil {
		c.logger.Info("A provider module could not be kept, so that a restart has to fetch it again", "digest", digest, "error", err.Error())
	}
}

// signature returns the signature that was found for an artifact. Whether it is good is for the keys to say.
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
		c.logger.Info("The signature of a provider module could not be kept, so that a restart has to fetch it again", "digest", digest, "error", err.Error())
	}
}

// write makes the file appear with all of its content. Two that write one file at a time may spoil it, which shows when it is read.
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
