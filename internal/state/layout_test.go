package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// planned is the result of a plan: staged copies, the head's data, and the record.
type planned struct {
	Stage    []string
	Data     map[string]int
	Versions []string
	Trash    []string
	Parts    int
	Untidy   bool
	Chunks   int
}

func show(p writePlan) planned {
	shown := planned{
		Data: map[string]int{}, Parts: p.Index.Parts, Untidy: p.Index.Untidy, Chunks: p.Index.Current.Chunks(),
	}
	for _, s := range p.Stage {
		shown.Stage = append(shown.Stage, fmt.Sprintf("%s/%d", s.Blob.Name, s.Blob.Chunks))
	}
	for key, value := range p.Data {
		if key != dataState {
			key = key[:strings.LastIndex(key, ".")] // without the checksum
		}
		shown.Data[key] = len(value)
	}
	for _, v := range p.Index.Versions {
		where := "inline"
		if v.Blob != nil {
			where = v.Blob.Name
		}
		shown.Versions = append(shown.Versions, fmt.Sprintf("%d:%s", v.Serial, where))
	}
	for _, b := range p.Index.Trash {
		shown.Trash = append(shown.Trash, b.Name)
	}
	return shown
}

func TestPlanPut(t *testing.T) {
	limits := layoutLimits{Versions: 2, Chunk: 10, Inline: 8}
	cases := map[string]struct {
		sizes  []int // of consecutive states
		limits layoutLimits
		want   planned
	}{
		"the first small state is one write": {
			sizes: []int{4}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 4}, Chunks: 1},
		},
		"small versions stay in the head, no more than are wanted": {
			sizes: []int{1, 2, 2, 2}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 2, "tfstate.v3": 2, "tfstate.v2": 2},
				Versions: []string{"3:inline", "2:inline"}, Chunks: 1},
		},
		"a version without room in the head gets a copy": {
			sizes: []int{5, 5}, limits: limits,
			want: planned{Stage: []string{"b1/1"}, Data: map[string]int{"tfstate": 5}, Versions: []string{"1:b1"},
				Chunks: 1},
		},
		"an older version moves out when the state grows": {
			sizes: []int{2, 2, 6}, limits: limits,
			want: planned{Stage: []string{"b1/1"}, Data: map[string]int{"tfstate": 6, "tfstate.v2": 2},
				Versions: []string{"2:inline", "1:b1"}, Chunks: 1},
		},
		"a big state gets a copy and parts": {
			sizes: []int{25}, limits: limits,
			want: planned{Stage: []string{"b1/3"}, Data: map[string]int{"tfstate": 10}, Parts: 2, Untidy: true,
				Chunks: 3},
		},
		"a state of exactly one chunk is not cut": {
			sizes: []int{10}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 10}, Chunks: 1},
		},
		"the copy of a big state becomes its version, and parts go": {
			sizes: []int{25, 3}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 3}, Versions: []string{"1:b1"}, Parts: 2, Untidy: true,
				Chunks: 1},
		},
		"the copy of a version that is no longer kept is trash": {
			sizes: []int{25, 3, 3, 2}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 2, "tfstate.v3": 3, "tfstate.v2": 3},
				Versions: []string{"3:inline", "2:inline"}, Trash: []string{"b1"}, Chunks: 1},
		},
		"no versions are kept when none are wanted": {
			sizes: []int{25, 3}, limits: layoutLimits{Versions: 0, Chunk: 10, Inline: 8},
			want: planned{Data: map[string]int{"tfstate": 3}, Trash: []string{"b1"}, Parts: 2, Untidy: true, Chunks: 1},
		},
		"the head has no versions when they may not be there": {
			sizes: []int{1, 1}, limits: layoutLimits{Versions: 2, Chunk: 10, Inline: -1},
			want: planned{Stage: []string{"b1/1"}, Data: map[string]int{"tfstate": 1}, Versions: []string{"1:b1"},
				Chunks: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			blobs := 0
			newBlob := func(_ indexEntry, chunks int) indexBlob {
				blobs++
				return indexBlob{Name: fmt.Sprintf("b%d", blobs), Chunks: chunks}
			}
			var have headIndex
			data := map[string][]byte{}
			var got writePlan
			for i, size := range tc.sizes {
				packed := []byte(strings.Repeat(string(rune('a'+i)), size))
				got = planPut(have, data, incomingState{State: &statefile.State{Serial: uint64(i + 1)}, Packed: packed},
					tc.limits, newBlob)
				data = map[string][]byte{}
				for key, value := range got.Data {
					data[key] = value
				}
				data[dataState] = packed
				if have = got.Index; i < len(tc.sizes)-1 {
					have = have.Cleaned()
				}
			}
			if diff := cmp.Diff(tc.want, show(got)); diff != "" {
				t.Errorf("plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanPutLeavesOutAVersionThatSomebodyDamaged(t *testing.T) {
	have := headIndex{Current: &indexEntry{Serial: 1, SHA256: checksum([]byte("good"))}}
	next := incomingState{State: &statefile.State{Serial: 2}, Packed: []byte("new")}
	got := planPut(have, map[string][]byte{dataState: []byte("bad")}, next,
		layoutLimits{Versions: 3, Chunk: 10, Inline: 10}, nil)
	if len(got.Index.Versions) != 0 || len(got.Data) != 1 {
		t.Errorf("got %+v, want the damaged version left out", show(got))
	}
}

func TestRecordKnowsEverySecret(t *testing.T) {
	full := headIndex{
		Current:  &indexEntry{Blob: &indexBlob{Name: "c", Chunks: 3}},
		Versions: []indexEntry{{Blob: &indexBlob{Name: "v", Chunks: 1}}, {Key: "k"}},
		Parts:    2,
		Trash:    []indexBlob{{Name: "t", Chunks: 1}},
	}
	want := headIndex{Parts: 2, Untidy: true, Trash: []indexBlob{{Name: "t", Chunks: 1}, {Name: "c", Chunks: 3},
		{Name: "v", Chunks: 1}}}
	if diff := cmp.Diff(want, full.Discarded()); diff != "" {
		t.Errorf("discarded record differs (-want +got):\n%s", diff)
	}
	if !full.Discarded().Cleaned().Empty() {
		t.Error("a discarded and cleaned record is not empty")
	}
	small := headIndex{Current: &indexEntry{}, Versions: []indexEntry{{Key: "k"}}}
	if !full.Elsewhere() || small.Elsewhere() || !(headIndex{Versions: full.Versions}).Elsewhere() {
		t.Error("elsewhere does not report whether Secrets besides the head may exist")
	}
	named := headIndex{Current: &indexEntry{Blob: &indexBlob{Name: "c"}},
		Versions: []indexEntry{{Key: "k"}, {Blob: &indexBlob{Name: "v"}}}, Trash: []indexBlob{{Name: "t"}}}
	if !named.Reads(indexBlob{Name: "c"}) || !named.Reads(indexBlob{Name: "v"}) || named.Reads(indexBlob{Name: "t"}) ||
		small.Reads(indexBlob{}) {
		t.Error("reads does not report whether a version is read from a copy")
	}
	for _, unknown := range []string{`{"format":3}`, `{"format":0}`} {
		if _, err := decodeIndex(map[string]string{annotationRecord: unknown}); err == nil {
			t.Errorf("the record %s is read", unknown)
		}
	}
}

// An operator without encryption must not touch encrypted states.
func TestTheFormatSaysThatSomethingIsEncrypted(t *testing.T) {
	for name, tc := range map[string]struct {
		index headIndex
		want  string
	}{
		"nothing":   {headIndex{Current: &indexEntry{}, Versions: []indexEntry{{}}}, `{"format":1`},
		"the state": {headIndex{Current: &indexEntry{Encrypted: true}}, `{"format":2`},
		"a version": {headIndex{Current: &indexEntry{}, Versions: []indexEntry{{}, {Encrypted: true}}},
			`{"format":2`},
		"attachments": {headIndex{EncryptedData: true}, `{"format":2`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := tc.index.Encode()
			if err != nil || !strings.HasPrefix(text, tc.want) || tc.index.Empty() {
				t.Errorf("got %s, %v", text, err)
			}
			decoded, err := decodeIndex(map[string]string{annotationRecord: text})
			if err != nil || decoded.Encrypted() != tc.index.Encrypted() {
				t.Errorf("read as %+v, %v", decoded, err)
			}
		})
	}
}
