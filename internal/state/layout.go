package state

import (
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// layoutLimits limit versions.
type layoutLimits struct {
	// Versions is the number of earlier versions to keep.
	Versions int
	// Chunk is the maximum size of a state in one Secret.
	Chunk int
	// Inline is the maximum size of a head including earlier versions; others get separate Secrets.
	Inline int
	// NoCopies means that no Secret can be created: versions that do not fit the head are dropped.
	NoCopies bool
}

// incomingState is a valid state to store.
type incomingState struct {
	State  *statefile.State
	Raw    []byte
	Packed []byte
	At     time.Time
	// Encrypted reports whether Packed is encrypted.
	Encrypted bool
}

// stagedWrite is a copy to write before the commit.
type stagedWrite struct {
	Blob    indexBlob
	Payload []byte
}

// writePlan is the plan of a Put.
type writePlan struct {
	// Stage lists the copies to write before the commit.
	Stage []stagedWrite
	// Index and Data are the head's new record and data.
	Index headIndex
	Data  map[string][]byte
}

// planPut decides where the incoming state and earlier versions go. data is the head's, with the whole packed state
// under its key. newBlob returns an unused name.
func planPut(have headIndex, data map[string][]byte, next incomingState, limits layoutLimits,
	newBlob func(e indexEntry, chunks int) indexBlob) writePlan {
	return planEntry(have, data, newIndexEntry(next), next.Packed, limits, newBlob)
}

// rewrittenVersion is a stored version with new bytes of the same state.
type rewrittenVersion struct {
	Entry  indexEntry
	Packed []byte
}

// planRewrite decides where the versions go, oldest first, that replace everything stored.
func planRewrite(have headIndex, versions []rewrittenVersion, limits layoutLimits,
	newBlob func(e indexEntry, chunks int) indexBlob) writePlan {
	result := writePlan{Index: have.Discarded(), Data: map[string][]byte{}}
	for _, version := range versions {
		e := version.Entry
		e.SHA256, e.Key, e.Blob, e.HeadSHA256, e.Parts = checksum(version.Packed), "", nil, "", 0
		stage := result.Stage
		result = planEntry(result.Index, result.Data, e, version.Packed, limits, newBlob)
		result.Stage = append(stage, result.Stage...)
	}
	return result
}

func planEntry(have headIndex, data map[string][]byte, current indexEntry, packed []byte, limits layoutLimits,
	newBlob func(e indexEntry, chunks int) indexBlob) writePlan {
	chunks := splitChunks(packed, limits.Chunk)
	result := writePlan{Data: map[string][]byte{dataState: chunks[0]}}
	if len(chunks) > 1 {
		copied := newBlob(current, len(chunks))
		current.Blob, current.HeadSHA256 = &copied, checksum(chunks[0])
		result.Stage = append(result.Stage, stagedWrite{Blob: copied, Payload: packed})
	}
	result.Index = headIndex{
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

// earlier returns the entries that precede the next version.
func earlier(have headIndex) []indexEntry {
	if have.Current == nil {
		return have.Versions
	}
	last := *have.Current
	last.HeadSHA256, last.Parts = "", 0
	if last.Blob == nil {
		last.Key = dataState
	}
	return append([]indexEntry{last}, have.Versions...)
}

// keep places an earlier version: where its copy is, else in the head if there is room, else in a new copy.
func (p *writePlan) keep(version indexEntry, data map[string][]byte, room int, limits layoutLimits,
	newBlob func(indexEntry, int) indexBlob) int {
	if version.Blob != nil {
		p.Index.Versions = append(p.Index.Versions, version)
		return room
	}
	payload := data[version.Key]
	if checksum(payload) != version.SHA256 {
		return room // deleted by someone else
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
	copied := newBlob(version, len(splitChunks(payload, limits.Chunk)))
	version.Key, version.Blob = "", &copied
	p.Stage = append(p.Stage, stagedWrite{Blob: copied, Payload: payload})
	p.Index.Versions = append(p.Index.Versions, version)
	return room
}

func newIndexEntry(next incomingState) indexEntry {
	return indexEntry{
		Serial:  next.State.Serial,
		Lineage: next.State.Lineage,
		SHA256:  checksum(next.Packed),
		Size:    len(next.Raw),
		Managed: len(next.State.Managed()),
		Written: next.At.UTC(), Encrypted: next.Encrypted,
	}
}
