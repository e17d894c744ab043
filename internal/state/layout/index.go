package layout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// AnnotationRecord is the annotation of a head that holds the Index.
	AnnotationRecord = "machine-iac.io/record"
	// DataState is the key of a Secret's data for a state or a part of one, as Terraform has it.
	DataState = "tfstate"

	versionKeySeparator = "."
)

// Formats of the layout. A change that an older operator would misread or destroy gets the next number; what it can ignore does not. The lowest
// is written that can say what there is.
const (
	formatPlain = 1
	// formatEncrypted has something that is encrypted.
	formatEncrypted = 2
	newestFormat    = formatEncrypted
)

// Index is what the layout of Terraform's backend has no place for. It lists every Secret that may exist besides the head,
// so that nothing has ever to be searched for and a crash leaves nothing unaccounted.
type Index struct {
	Format int `json:"format"`
	// Current is the committed state, nil before the first.
	Current *Entry `json:"current,omitempty"`
	// Versions are the ones before it, newest first.
	Versions []Entry `json:"versions,omitempty"`
	// Parts is how many part Secrets may exist.
	Parts int `json:"parts,omitempty"`
	// Untidy says that the part Secrets may not be those of Current yet.
	Untidy bool `json:"untidy,omitempty"`
	// Trash are copies that may exist and that nothing refers to.
	Trash []Blob `json:"trash,omitempty"`
	// EncryptedData says that of what is kept beside the state something is encrypted.
	EncryptedData bool `json:"encryptedData,omitempty"`
}

// Entry describes one version.
type Entry struct {
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
	Blob *Blob `json:"blob,omitempty"`
	// HeadSHA256 is the checksum of the part that is in the head, for a current version with a blob.
	HeadSHA256 string `json:"headSHA256,omitempty"`
	// Parts that another program stored the current version in. It is then known by its compression's checksum alone.
	Parts int `json:"parts,omitempty"`
	// Encrypted says that the packed bytes are those of an encrypted state.
	Encrypted bool `json:"encrypted,omitempty"`
}

// Blob is an immutable copy of one version. Its name is used once.
type Blob struct {
	Name   string `json:"name"`
	Chunks int    `json:"chunks"`
}

// Chunk names one Secret of the copy.
func (b Blob) Chunk(index int) string { return b.Name + "-" + strconv.Itoa(index) }

// Chunks is how many Secrets hold the entry as the current one, the head included.
func (e *Entry) Chunks() int {
	switch {
	case e == nil:
		return 0
	case e.Blob == nil:
		return 1 + e.Parts
	}
	return e.Blob.Chunks
}

// Tidy reports whether the Secrets besides the head are exactly those that Current and Versions name.
func (r Index) Tidy() bool { return !r.Untidy && len(r.Trash) == 0 }

// Cleaned is the record once they are.
func (r Index) Cleaned() Index {
	r.Parts = max(r.Current.Chunks()-1, 0)
	r.Untidy = false
	r.Trash = nil
	return r
}

// Elsewhere reports whether any Secret besides the head may exist.
func (r Index) Elsewhere() bool {
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

// Reads reports whether a version is read from the copy.
func (r Index) Reads(copied Blob) bool {
	if r.Current != nil && r.Current.Blob != nil && *r.Current.Blob == copied {
		return true
	}
	return slices.ContainsFunc(r.Versions, func(e Entry) bool { return e.Blob != nil && *e.Blob == copied })
}

// Discarded is the record of a state that is given up: nothing is current, every copy is trash.
func (r Index) Discarded() Index {
	trash := append([]Blob(nil), r.Trash...)
	versions := r.Versions
	if r.Current != nil {
		versions = append([]Entry{*r.Current}, versions...)
	}
	for _, version := range versions {
		if version.Blob != nil {
			trash = append(trash, *version.Blob)
		}
	}
	return Index{Parts: r.Parts, Untidy: r.Parts > 0, Trash: trash, EncryptedData: r.EncryptedData}
}

// Empty reports whether there is nothing to record.
func (r Index) Empty() bool {
	return r.Current == nil && len(r.Versions) == 0 && r.Parts == 0 && r.Tidy() && !r.EncryptedData
}

// Encrypted reports whether anything is encrypted.
func (r Index) Encrypted() bool {
	return r.EncryptedData || r.Current != nil && r.Current.Encrypted || slices.ContainsFunc(r.Versions, func(e Entry) bool { return e.Encrypted })
}

// Encode returns the record as an annotation has it.
func (r Index) Encode() (string, error) {
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

// DecodeIndex reads the record of a head; a head without one has an empty record.
func DecodeIndex(annotations map[string]string) (Index, error) {
	text, ok := annotations[AnnotationRecord]
	if !ok {
		return Index{}, nil
	}
	// The format comes first: the rest of a newer one may mean anything.
	var layout struct {
		Format int `json:"format"`
	}
	if json.Unmarshal([]byte(text), &layout) == nil && layout.Format > newestFormat {
		return Index{}, fmt.Errorf("reading annotation %s: %w", AnnotationRecord, &FormatError{Format: layout.Format})
	}
	var decoded Index
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return Index{}, fmt.Errorf("reading annotation %s: %w", AnnotationRecord, err)
	}
	if decoded.Format < formatPlain {
		return Index{}, fmt.Errorf("reading annotation %s: there is no format %d", AnnotationRecord, decoded.Format)
	}
	return decoded, nil
}

// Begins reports whether the bytes in the head are those that were committed with the entry.
func (e *Entry) Begins(first []byte) bool {
	if e.Blob == nil {
		return Checksum(first) == e.SHA256
	}
	return Checksum(first) == e.HeadSHA256
}

// Adopted is the record of a foreign state. What was current before remains as a version where it has a copy.
func (r Index) Adopted(current Entry) Index {
	if r.Current != nil && r.Current.Blob != nil {
		last := *r.Current
		last.HeadSHA256 = ""
		r.Versions = append([]Entry{last}, r.Versions...)
	}
	r.Current = &current
	r.Parts = max(r.Parts, current.Parts)
	r.Untidy = r.Parts > current.Parts
	return r
}

// versionKey names the head's data for an earlier version. The checksum keeps two lineages apart.
func versionKey(e Entry) string {
	return strings.Join([]string{DataState, "v" + strconv.FormatUint(e.Serial, 10), e.SHA256[:8]}, versionKeySeparator)
}

// OwnsData reports whether a key of a head's data is the state's or a version's.
func OwnsData(key string) bool {
	return key == DataState || strings.HasPrefix(key, DataState+versionKeySeparator+"v")
}

// OwnData picks the state and its versions from a head's data; keys of others are left out.
func OwnData(data map[string][]byte) map[string][]byte {
	own := map[string][]byte{}
	for key, value := range data {
		if OwnsData(key) {
			own[key] = value
		}
	}
	return own
}

// FormatError says that a newer operator wrote the head, in a layout that this one does not know. Nothing was read or changed.
type FormatError struct {
	// Format that the head says.
	Format int
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("a newer operator wrote it, in format %d, and this one knows formats up to %d: upgrade the operator", e.Format, newestFormat)
}
