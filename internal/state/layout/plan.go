package layout

import (
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// Limits is where versions have to fit.
type Limits struct {
	// Versions to keep besides the current one.
	Versions int
	// Chunk is the most bytes of one state in one Secret.
	Chunk int
	// Inline is the most bytes that a head may have with its earlier versions; past it they get Secrets of their own.
	Inline int
	// NoCopies says that no Secret can be made for a version: one without a place is given up.
	NoCopies bool
}

// Incoming is a checked state to be stored.
type Incoming struct {
	State  *statefile.State
	Raw    []byte
	Packed []byte
	At     time.Time
	// Encrypted says that Packed is.
	Encrypted bool
}

// Staged is a copy that must exist before the commit.
type Staged struct {
	Blob    Blob
	Payload []byte
}

// Plan is what a Put has to do.
type Plan struct {
	// Stage lists the copies to write before the commit.
	Stage []Staged
	// Index and data of the head are the commit.
	Index Index
	Data  map[string][]byte
}

// PlanPut decides where the incoming state and the versions before it go. data is the head's, with the whole packed
// state under its key. newBlob makes a name that was never used.
func PlanPut(have Index, data map[string][]byte, next Incoming, limits Limits, newBlob func(e Entry, chunks int) Blob) Plan {
	return planEntry(have, data, NewEntry(next), next.Packed, limits, newBlob)
}

// Rewritten is a version that is stored, with other bytes of the same state.
type Rewritten struct {
	Entry  Entry
	Packed []byte
}

// PlanRewrite decides where versions go, oldest first, that replace all that is stored.
func PlanRewrite(have Index, versions []Rewritten, limits Limits, newBlob func(e Entry, chunks int) Blob) Plan {
	result := Plan{Index: have.Discarded(), Data: map[string][]byte{}}
	for _, version := range versions {
		e := version.Entry
		e.SHA256, e.Key, e.Blob, e.HeadSHA256, e.Parts = Checksum(version.Packed), "", nil, "", 0
		stage := result.Stage
		result = planEntry(result.Index, result.Data, e, version.Packed, limits, newBlob)
		result.Stage = append(stage, result.Stage...)
	}
	return result
}

func planEntry(have Index, data map[string][]byte, current Entry, packed []byte, limits Limits, newBlob func(e Entry, chunks int) Blob) Plan {
	chunks := Split(packed, limits.Chunk)
	result := Plan{Data: map[string][]byte{DataState: chunks[0]}}
	if len(chunks) > 1 {
		copied := newBlob(current, len(chunks))
		current.Blob, current.HeadSHA256 = &copied, Checksum(chunks[0])
		result.Stage = append(result.Stage, Staged{Blob: copied, Payload: packed})
	}
	result.Index = Index{
		Current: &current,
		Parts:   max(have.Parts, len(chunks)-1),
		Trash:   slices.Clone(have.Trash),

		EncryptedData: have.EncryptedData,
	}
	result.Index.Untidy = result.Index.Parts > 0

	room := limits.Inline - len(chunks[0])
	for i, version := range earlier(have) {
		if i >= limits.Versions {
			if version.Blob != nil {
				result.Index.Trash = append(result.Index.Trash, *version.Blob)
			}
			continue
		}
		room = result.keep(version, data, room, limits, newBlob)
	}
	return result
}

// earlier lists what is about to be the versions before the current one.
func earlier(have Index) []Entry {
	if have.Current == nil {
		return have.Versions
	}
	last := *have.Current
	last.HeadSHA256, last.Parts = "", 0
	if last.Blob == nil {
		last.Key = DataState
	}
	return append([]Entry{last}, have.Versions...)
}

// keep places one earlier version: where it is when it has a copy, else in the head while there is room, else in a copy.
func (p *Plan) keep(version Entry, data map[string][]byte, room int, limits Limits, newBlob func(Entry, int) Blob) int {
	if version.Blob != nil {
		p.Index.Versions = append(p.Index.Versions, version)
		return room
	}
	payload := data[version.Key]
	if Checksum(payload) != version.SHA256 {
		return room // somebody else took it away; there is nothing left to keep
	}
	if len(payload) <= room {
		version.Key = versionKey(version)
		p.Data[version.Key] = payload
		p.Index.Versions = append(p.Index.Versions, version)
		return room - len(payload)
	}
	if limits.NoCopies {
		return room
	}
	copied := newBlob(version, len(Split(payload, limits.Chunk)))
	version.Key, version.Blob = "", &copied
	p.Stage = append(p.Stage, Staged{Blob: copied, Payload: payload})
	p.Index.Versions = append(p.Index.Versions, version)
	return room
}

// NewEntry describes an incoming state.
func NewEntry(next Incoming) Entry {
	return Entry{
		Serial:  next.State.Serial,
		Lineage: next.State.Lineage,
		SHA256:  Checksum(next.Packed),
		Size:    len(next.Raw),
		Managed: len(next.State.Managed()),
		Written: next.At.UTC(), Encrypted: next.Encrypted,
	}
}
