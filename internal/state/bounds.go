package state

import (
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// Bounds of a record. Anyone who can write the Secret can store any record, and the store allocates, reads and removes
// what it names.
const (
	// MaxChunks bounds the Secrets of one copy, of at most a mebibyte each. The largest state takes two dozen.
	MaxChunks = 64
	// maxVersions bounds the earlier versions. The default is three.
	maxVersions = 64
)

// check rejects records that no store writes.
func (r headIndex) check() error {
	if r.Parts < 0 || r.Parts >= MaxChunks {
		return fmt.Errorf("it says that the state has %d parts, and a state has %d at most", r.Parts, MaxChunks-1)
	}
	if len(r.Versions) > maxVersions {
		return fmt.Errorf("it lists %d earlier versions, and %d are kept at most", len(r.Versions), maxVersions)
	}
	if r.Current != nil {
		if err := r.Current.check(); err != nil {
			return err
		}
	}
	for _, version := range r.Versions {
		if err := version.check(); err != nil {
			return err
		}
	}
	for _, copied := range r.Trash {
		if err := copied.check(); err != nil {
			return err
		}
	}
	return nil
}

func (e indexEntry) check() error {
	switch {
	case e.Serial > statefile.MaxSerial:
		return fmt.Errorf("it has a version with the serial %d, and serials end at %d", e.Serial,
			uint64(statefile.MaxSerial))
	case e.Size < 0 || e.Size > maxUnpacked:
		return fmt.Errorf("the version %d has %d bytes in it, and a state has %d at most", e.Serial, e.Size,
			maxUnpacked)
	case e.Managed < 0 || e.Managed > statefile.MaxValues:
		return fmt.Errorf("the version %d has %d resources in it, and a state has %d at most", e.Serial, e.Managed,
			statefile.MaxValues)
	case e.Parts < 0 || e.Parts >= MaxChunks:
		return fmt.Errorf("the version %d has %d parts in it, and a state has %d at most", e.Serial, e.Parts,
			MaxChunks-1)
	case e.Blob != nil:
		return e.Blob.check()
	}
	return nil
}

func (b indexBlob) check() error {
	if b.Chunks < 1 || b.Chunks > MaxChunks {
		return fmt.Errorf("the copy %.100q has %d Secrets in it, and a copy has 1 to %d", b.Name, b.Chunks, MaxChunks)
	}
	return nil
}
