package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const versionKeySeparator = "."

// Format versions of the layout. A change that an older operator would misread or destroy gets the next number; a
// change that it can ignore does not. The store writes the lowest sufficient version.
const (
	formatPlain = 1
	// formatEncrypted adds encryption.
	formatEncrypted = 2
	newestFormat    = formatEncrypted
)

// headIndex is the record: data without a place in the layout of Terraform's backend. It lists every Secret that may
// exist besides the head, so that the store never searches, and a crash leaves no untracked Secret.
type headIndex struct {
	Format int `json:"format"`
	// Current is the committed state; nil before the first.
	Current *indexEntry `json:"current,omitempty"`
	// Versions are the earlier versions, newest first.
	Versions []indexEntry `json:"versions,omitempty"`
	// Parts is the number of part Secrets that may exist.
	Parts int `json:"parts,omitempty"`
	// Untidy means that the part Secrets may not match Current yet.
	Untidy bool `json:"untidy,omitempty"`
	// Trash are unreferenced copies that may exist.
	Trash []indexBlob `json:"trash,omitempty"`
	// EncryptedData means that attachments are encrypted.
	EncryptedData bool `json:"encryptedData,omitempty"`
}

// indexEntry describes one version.
type indexEntry struct {
	Serial  uint64 `json:"serial"`
	Lineage string `json:"lineage"`
	// SHA256 of the packed bytes.
	SHA256 string `json:"sha256"`
	// Size of the state as JSON, in bytes.
	Size int `json:"size"`
	// Managed is the number of managed resources.
	Managed int       `json:"managed"`
	Written time.Time `json:"written"`
	// Key of the head's data that holds an earlier version.
	Key string `json:"key,omitempty"`
	// Blob is the copy in separate Secrets. The current version has one if it does not fit the head.
	Blob *indexBlob `json:"blob,omitempty"`
	// HeadSHA256 is the checksum of the part in the head, for a current version with a blob.
	HeadSHA256 string `json:"headSHA256,omitempty"`
	// Parts is the number of parts of a current version that another program stored. Only the checksum of its
	// compression verifies it.
	Parts int `json:"parts,omitempty"`
	// Encrypted means that the packed state is encrypted.
	Encrypted bool `json:"encrypted,omitempty"`
}

// indexBlob is an immutable copy of one version. Names are never reused.
type indexBlob struct {
	Name   string `json:"name"`
	Chunks int    `json:"chunks"`
}

// Chunk returns the name of one Secret of the copy.
func (b indexBlob) Chunk(index int) string { return b.Name + "-" + strconv.Itoa(index) }

// Chunks returns the number of Secrets of the entry as the current one, including the head.
func (e *indexEntry) Chunks() int {
	switch {
	case e == nil:
		return 0
	case e.Blob == nil:
		return 1 + e.Parts
	}
	return e.Blob.Chunks
}

// Tidy reports whether only the head and the Secrets named by Current and Versions exist.
func (r headIndex) Tidy() bool { return !r.Untidy && len(r.Trash) == 0 }

// Cleaned returns the record after a cleanup.
func (r headIndex) Cleaned() headIndex {
	r.Parts = max(r.Current.Chunks()-1, 0)
	r.Untidy = false
	r.Trash = nil
	return r
}

// Elsewhere reports whether any Secret besides the head may exist.
func (r headIndex) Elsewhere() bool {
	if r.Parts > 0 || !r.Tidy() || r.Current != nil && r.Current.Blob != nil {
		return true
	}
	for _, version := range r.Versions {
		if version.Blob != nil {
			return true
		}
	}
	return false
}

// Reads reports whether a version refers to the copy.
func (r headIndex) Reads(copied indexBlob) bool {
	if r.Current != nil && r.Current.Blob != nil && *r.Current.Blob == copied {
		return true
	}
	return slices.ContainsFunc(r.Versions, func(e indexEntry) bool { return e.Blob != nil && *e.Blob == copied })
}

// Discarded returns the record of a discarded state: no current version, and every copy is trash.
func (r headIndex) Discarded() headIndex {
	trash := append([]indexBlob(nil), r.Trash...)
	versions := r.Versions
	if r.Current != nil {
		versions = append([]indexEntry{*r.Current}, versions...)
	}
	for _, version := range versions {
		if version.Blob != nil {
			trash = append(trash, *version.Blob)
		}
	}
	return headIndex{Parts: r.Parts, Untidy: r.Parts > 0, Trash: trash, EncryptedData: r.EncryptedData}
}

// Empty reports whether there is nothing to record.
func (r headIndex) Empty() bool {
	return r.Current == nil && len(r.Versions) == 0 && r.Parts == 0 && r.Tidy() && !r.EncryptedData
}

// Encrypted reports whether anything is encrypted.
func (r headIndex) Encrypted() bool {
	return r.EncryptedData || r.Current != nil && r.Current.Encrypted ||
		slices.ContainsFunc(r.Versions, func(e indexEntry) bool { return e.Encrypted })
}

// Encode returns the record's annotation.
func (r headIndex) Encode() (string, error) {
	r.Format = formatPlain
	if r.Encrypted() {
		r.Format = formatEncrypted
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encoding the record: %w", err)
	}
	return string(raw), nil
}

// decodeIndex reads the record of a head. It is empty without the annotation.
func decodeIndex(annotations map[string]string) (headIndex, error) {
	text, ok := annotations[annotationRecord]
	if !ok {
		return headIndex{}, nil
	}
	// Check the format first: a newer one may have another structure.
	var layout struct {
		Format int `json:"format"`
	}
	if json.Unmarshal([]byte(text), &layout) == nil && layout.Format > newestFormat {
		return headIndex{}, fmt.Errorf("reading annotation %s: %w", annotationRecord,
			&FormatError{Format: layout.Format})
	}
	var decoded headIndex
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return headIndex{}, fmt.Errorf("reading annotation %s: %w", annotationRecord, err)
	}
	if decoded.Format < formatPlain {
		return headIndex{}, fmt.Errorf("reading annotation %s: there is no format %d", annotationRecord, decoded.Format)
	}
	if err := decoded.check(); err != nil {
		return headIndex{}, fmt.Errorf("reading annotation %s: %w", annotationRecord, err)
	}
	return decoded, nil
}

// Begins reports whether first is the head's part of the entry.
func (e *indexEntry) Begins(first []byte) bool {
	if e.Blob == nil {
		return checksum(first) == e.SHA256
	}
	return checksum(first) == e.HeadSHA256
}

// Adopted returns the record of a foreign state. The previous current version stays as a version if it has a copy.
func (r headIndex) Adopted(current indexEntry) headIndex {
	if r.Current != nil && r.Current.Blob != nil {
		last := *r.Current
		last.HeadSHA256 = ""
		r.Versions = append([]indexEntry{last}, r.Versions...)
	}
	r.Current = &current
	r.Parts = max(r.Parts, current.Parts)
	r.Untidy = r.Parts > current.Parts
	return r
}

// versionKey names the head's data key of an earlier version. The checksum distinguishes lineages.
func versionKey(e indexEntry) string {
	return strings.Join([]string{dataState, "v" + strconv.FormatUint(e.Serial, 10), e.SHA256[:8]}, versionKeySeparator)
}

// ownsData reports whether a data key of the head holds the state or a version.
func ownsData(key string) bool {
	return key == dataState || strings.HasPrefix(key, dataState+versionKeySeparator+"v")
}

// ownData returns the state and its versions from a head's data.
func ownData(data map[string][]byte) map[string][]byte {
	own := map[string][]byte{}
	for key, value := range data {
		if ownsData(key) {
			own[key] = value
		}
	}
	return own
}

// FormatError means that a newer operator wrote the head, in a format unknown to this one. Nothing was read or changed.
type FormatError struct {
	// Format of the head.
	Format int
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("a newer operator wrote it, in format %d, and this one knows formats up to %d: upgrade the "+
		"operator", e.Format, newestFormat)
}
