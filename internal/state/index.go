package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// indexFormat is the layout that is written, and the newest that is read. A change that an older operator would misread or
// destroy gets the next number; what it can ignore does not.
const indexFormat = 1

// index is what the layout of Terraform's backend has no place for. It lists every Secret that may exist besides the head,
// so that nothing has ever to be searched for and a crash leaves nothing unaccounted.
type index struct {
	Format int `json:"format"`
	// Current is the committed state, nil before the first.
	Current *entry `json:"current,omitempty"`
	// Versions are the ones before it, newest first.
	Versions []entry `json:"versions,omitempty"`
	// Parts is how many part Secrets may exist.
	Parts int `json:"parts,omitempty"`
	// Untidy says that the part Secrets may not be those of Current yet.
	Untidy bool `json:"untidy,omitempty"`
	// Trash are copies that may exist and that nothing refers to.
	Trash []blob `json:"trash,omitempty"`
}

// entry describes one version.
type entry struct {
	Serial  uint64 `json:"serial"`
	Lineage string `json:"lineage"`
	// SHA256 of the packed bytes.
	SHA256 string `json:"sha256"`
	// Size of the raw bytes.
	Size int `json:"size"`
	// Managed counts the managed resources.
	Managed int       `json:"managed"`
	Written time.Time `json:"written"`
	// Key of the head's data that holds an earlier version.
	Key string `json:"key,omitempty"`
	// Blob is the copy in Secrets of its own. The current version has one when it does not fit the head.
	Blob *blob `json:"blob,omitempty"`
	// HeadSHA256 is the checksum of the part that is in the head, for a current version with a blob.
	HeadSHA256 string `json:"headSHA256,omitempty"`
	// Parts that another program stored the current version in. It is then known by its compression's checksum alone.
	Parts int `json:"parts,omitempty"`
}

// blob is an immutable copy of one version. Its name is used once.
type blob struct {
	Name   string `json:"name"`
	Chunks int    `json:"chunks"`
}

func (b blob) chunk(index int) string { return b.Name + "-" + strconv.Itoa(index) }

// chunks is how many Secrets hold the entry as the current one, the head included.
func (e *entry) chunks() int {
	switch {
	case e == nil:
		return 0
	case e.Blob == nil:
		return 1 + e.Parts
	}
	return e.Blob.Chunks
}

// tidy reports whether the Secrets besides the head are exactly those that Current and Versions name.
func (r index) tidy() bool { return !r.Untidy && len(r.Trash) == 0 }

// cleaned is the record once they are.
func (r index) cleaned() index {
	r.Parts = max(r.Current.chunks()-1, 0)
	r.Untidy = false
	r.Trash = nil
	return r
}

// elsewhere reports whether any Secret besides the head may exist.
func (r index) elsewhere() bool {
	if r.Parts > 0 || !r.tidy() || r.Current != nil && r.Current.Blob != nil {
		return true
	}
	for _, version := range r.Versions {
		if version.Blob != nil {
			return true
		}
	}
	return false
}

// reads reports whether a version is read from the copy.
func (r index) reads(copied blob) bool {
	if r.Current != nil && r.Current.Blob != nil && *r.Current.Blob == copied {
		return true
	}
	return slices.ContainsFunc(r.Versions, func(e entry) bool { return e.Blob != nil && *e.Blob == copied })
}

// discarded is the record of a state that is given up: nothing is current, every copy is trash.
func (r index) discarded() index {
	trash := append([]blob(nil), r.Trash...)
	versions := r.Versions
	if r.Current != nil {
		versions = append([]entry{*r.Current}, versions...)
	}
	for _, version := range versions {
		if version.Blob != nil {
			trash = append(trash, *version.Blob)
		}
	}
	return index{Parts: r.Parts, Untidy: r.Parts > 0, Trash: trash}
}

func (r index) empty() bool {
	return r.Current == nil && len(r.Versions) == 0 && r.Parts == 0 && r.tidy()
}

func (r index) encode() (string, error) {
	r.Format = indexFormat
	raw, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encoding the record: %w", err)
	}
	return string(raw), nil
}

func decodeIndex(annotations map[string]string) (index, error) {
	text, ok := annotations[annotationRecord]
	if !ok {
		return index{}, nil
	}
	// The format comes first: the rest of a newer one may mean anything.
	var layout struct {
		Format int `json:"format"`
	}
	if json.Unmarshal([]byte(text), &layout) == nil && layout.Format > indexFormat {
		return index{}, fmt.Errorf("reading annotation %s: %w", annotationRecord, &FormatError{Format: layout.Format})
	}
	var decoded index
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return index{}, fmt.Errorf("reading annotation %s: %w", annotationRecord, err)
	}
	if decoded.Format != indexFormat {
		return index{}, fmt.Errorf("reading annotation %s: there is no format %d", annotationRecord, decoded.Format)
	}
	return decoded, nil
}

// versionKey names the head's data for an earlier version. The checksum keeps two lineages apart.
func versionKey(e entry) string {
	return strings.Join([]string{dataState, "v" + strconv.FormatUint(e.Serial, 10), e.SHA256[:8]}, versionKeySeparator)
}

func ownsData(key string) bool {
	return key == dataState || strings.HasPrefix(key, dataState+versionKeySeparator+"v")
}

// ownData picks the state and its versions from a head's data; keys of others are left out.
func ownData(head *corev1.Secret) map[string][]byte {
	own := map[string][]byte{}
	for key, value := range head.Data {
		if ownsData(key) {
			own[key] = value
		}
	}
	return own
}
