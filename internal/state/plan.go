package state

import (
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// layout is where versions have to fit.
type layout struct {
	// versions to keep besides the current one.
	versions int
	// chunk is the most bytes of one state in one Secret.
	chunk int
	// inline is the most bytes that a head may have with its earlier versions; past it they get Secrets of their own.
	inline int
	// noCopies says that no Secret can be made for a version: one without a place is given up.
	noCopies bool
}

// incoming is a checked state to be stored.
type incoming struct {
	state  *statefile.State
	raw    []byte
	packed []byte
	at     time.Time
}

// staged is a copy that must exist before the commit.
type staged struct {
	blob    blob
	payload []byte
}

// plan is what a Put has to do.
type plan struct {
	// stage lists the copies to write before the commit.
	stage []staged
	// index and data of the head are the commit.
	index index
	data  map[string][]byte
}

// planPut decides where the incoming state and the versions before it go. data is the head's, with the whole packed
// state under its key. newBlob makes a name that was never used.
func planPut(have index, data map[string][]byte, next incoming, limits layout, newBlob func(e entry, chunks int) blob) plan {
	chunks := split(next.packed, limits.chunk)
	current := newEntry(next)
	result := plan{data: map[string][]byte{dataState: chunks[0]}}
	if len(chunks) > 1 {
		copied := newBlob(current, len(chunks))
		current.Blob, current.HeadSHA256 = &copied, checksum(chunks[0])
		result.stage = append(result.stage, staged{blob: copied, payload: next.packed})
	}
	result.index = index{
		Current: &current,
		Parts:   max(have.Parts, len(chunks)-1),
		Trash:   slices.Clone(have.Trash),
	}
	result.index.Untidy = result.index.Parts > 0

	room := limits.inline - len(chunks[0])
	for i, version := range earlier(have) {
		if i >= limits.versions {
			if version.Blob != nil {
				result.index.Trash = append(result.index.Trash, *version.Blob)
			}
			continue
		}
		room = result.keep(version, data, room, limits, newBlob)
	}
	return result
}

// earlier lists what is about to be the versions before the current one.
func earlier(have index) []entry {
	if have.Current == nil {
		return have.Versions
	}
	last := *have.Current
	last.HeadSHA256, last.Parts = "", 0
	if last.Blob == nil {
		last.Key = dataState
	}
	return append([]entry{last}, have.Versions...)
}

// keep places one earlier version: where it is when it has a copy, else in the head while there is room, else in a copy.
func (p *plan) keep(version entry, data map[string][]byte, room int, limits layout, newBlob func(entry, int) blob) int {
	if version.Blob != nil {
		p.index.Versions = append(p.index.Versions, version)
		return room
	}
	payload := data[version.Key]
	if checksum(payload) != version.SHA256 {
		return room // somebody else took it away; there is nothing left to keep
	}
	if len(payload) <= room {
		version.Key = versionKey(version)
		p.data[version.Key] = payload
		p.index.Versions = append(p.index.Versions, version)
		return room - len(payload)
	}
	if limits.noCopies {
		return room
	}
	copied := newBlob(version, len(split(payload, limits.chunk)))
	version.Key, version.Blob = "", &copied
	p.stage = append(p.stage, staged{blob: copied, payload: payload})
	p.index.Versions = append(p.index.Versions, version)
	return room
}

func newEntry(next incoming) entry {
	return entry{
		Serial:  next.state.Serial,
		Lineage: next.state.Lineage,
		SHA256:  checksum(next.packed),
		Size:    len(next.raw),
		Managed: len(next.state.Managed()),
		Written: next.at.UTC(),
	}
}
