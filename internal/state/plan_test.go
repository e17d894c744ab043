package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// planned shows where a plan puts things: what is staged, what is in the head, and what the record says.
type planned struct {
	Stage    []string
	Data     map[string]int
	Versions []string
	Trash    []string
	Parts    int
	Untidy   bool
	Chunks   int
}

func show(p plan) planned {
	shown := planned{
		Data: map[string]int{}, Parts: p.index.Parts, Untidy: p.index.Untidy, Chunks: p.index.Current.chunks(),
	}
	for _, s := range p.stage {
		shown.Stage = append(shown.Stage, fmt.Sprintf("%s/%d", s.blob.Name, s.blob.Chunks))
	}
	for key, value := range p.data {
		if key != dataState {
			key = key[:strings.LastIndex(key, ".")] // without the checksum
		}
		shown.Data[key] = len(value)
	}
	for _, v := range p.index.Versions {
		where := "inline"
		if v.Blob != nil {
			where = v.Blob.Name
		}
		shown.Versions = append(shown.Versions, fmt.Sprintf("%d:%s", v.Serial, where))
	}
	for _, b := range p.index.Trash {
		shown.Trash = append(shown.Trash, b.Name)
	}
	return shown
}

func TestPlanPut(t *testing.T) {
	limits := layout{versions: 2, chunk: 10, inline: 8}
	cases := map[string]struct {
		sizes  []int // of the states put one after the other
		limits layout
		want   planned
	}{
		"the first small state is one write": {
			sizes: []int{4}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 4}, Chunks: 1},
		},
		"small versions stay in the head, no more than are wanted": {
			sizes: []int{1, 2, 2, 2}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 2, "tfstate.v3": 2, "tfstate.v2": 2}, Versions: []string{"3:inline", "2:inline"}, Chunks: 1},
		},
		"a version without room in the head gets a copy": {
			sizes: []int{5, 5}, limits: limits,
			want: planned{Stage: []string{"b1/1"}, Data: map[string]int{"tfstate": 5}, Versions: []string{"1:b1"}, Chunks: 1},
		},
		"an older version moves out when the state grows": {
			sizes: []int{2, 2, 6}, limits: limits,
			want: planned{Stage: []string{"b1/1"}, Data: map[string]int{"tfstate": 6, "tfstate.v2": 2}, Versions: []string{"2:inline", "1:b1"}, Chunks: 1},
		},
		"a big state gets a copy and parts": {
			sizes: []int{25}, limits: limits,
			want: planned{Stage: []string{"b1/3"}, Data: map[string]int{"tfstate": 10}, Parts: 2, Untidy: true, Chunks: 3},
		},
		"a state of exactly one chunk is not cut": {
			sizes: []int{10}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 10}, Chunks: 1},
		},
		"the copy of a big state becomes its version, and parts go": {
			sizes: []int{25, 3}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 3}, Versions: []string{"1:b1"}, Parts: 2, Untidy: true, Chunks: 1},
		},
		"the copy of a version that is no longer kept is trash": {
			sizes: []int{25, 3, 3, 2}, limits: limits,
			want: planned{Data: map[string]int{"tfstate": 2, "tfstate.v3": 3, "tfstate.v2": 3}, Versions: []string{"3:inline", "2:inline"}, Trash: []string{"b1"}, Chunks: 1},
		},
		"no versions are kept when none are wanted": {
			sizes: []int{25, 3}, limits: layout{versions: 0, chunk: 10, inline: 8},
			want: planned{Data: map[string]int{"tfstate": 3}, Trash: []string{"b1"}, Parts: 2, Untidy: true, Chunks: 1},
		},
		"the head has no versions when they may not be there": {
			sizes: []int{1, 1}, limits: layout{versions: 2, chunk: 10, inline: -1},
			want: planned{Stage: []string{"b1/1"}, Data: map[string]int{"tfstate": 1}, Versions: []string{"1:b1"}, Chunks: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			blobs := 0
			newBlob := func(_ entry, chunks int) blob {
				blobs++
				return blob{Name: fmt.Sprintf("b%d", blobs), Chunks: chunks}
			}
			var have index
			data := map[string][]byte{}
			var got plan
			for i, size := range tc.sizes {
				packed := []byte(strings.Repeat(string(rune('a'+i)), size))
				got = planPut(have, data, incoming{state: &statefile.State{Serial: uint64(i + 1)}, packed: packed}, tc.limits, newBlob)
				data = map[string][]byte{}
				for key, value := range got.data {
					data[key] = value
				}
				data[dataState] = packed
				if have = got.index; i < len(tc.sizes)-1 {
					have = have.cleaned()
				}
			}
			if diff := cmp.Diff(tc.want, show(got)); diff != "" {
				t.Errorf("plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanPutLeavesOutAVersionThatSomebodyDamaged(t *testing.T) {
	have := index{Current: &entry{Serial: 1, SHA256: checksum([]byte("good"))}}
	next := incoming{state: &statefile.State{Serial: 2}, packed: []byte("new")}
	got := planPut(have, map[string][]byte{dataState: []byte("bad")}, next, layout{versions: 3, chunk: 10, inline: 10}, nil)
	if len(got.index.Versions) != 0 || len(got.data) != 1 {
		t.Errorf("got %+v, want the damaged version left out", show(got))
	}
}

func TestRecordKnowsEverySecret(t *testing.T) {
	full := index{
		Current:  &entry{Blob: &blob{Name: "c", Chunks: 3}},
		Versions: []entry{{Blob: &blob{Name: "v", Chunks: 1}}, {Key: "k"}},
		Parts:    2,
		Trash:    []blob{{Name: "t", Chunks: 1}},
	}
	want := index{Parts: 2, Untidy: true, Trash: []blob{{Name: "t", Chunks: 1}, {Name: "c", Chunks: 3}, {Name: "v", Chunks: 1}}}
	if diff := cmp.Diff(want, full.discarded()); diff != "" {
		t.Errorf("discarded record differs (-want +got):\n%s", diff)
	}
	if !full.discarded().cleaned().empty() {
		t.Error("a discarded and cleaned record is not empty")
	}
	small := index{Current: &entry{}, Versions: []entry{{Key: "k"}}}
	if !full.elsewhere() || small.elsewhere() || !(index{Versions: full.Versions}).elsewhere() {
		t.Error("elsewhere does not report whether Secrets besides the head may exist")
	}
	named := index{Current: &entry{Blob: &blob{Name: "c"}}, Versions: []entry{{Key: "k"}, {Blob: &blob{Name: "v"}}}, Trash: []blob{{Name: "t"}}}
	if !named.reads(blob{Name: "c"}) || !named.reads(blob{Name: "v"}) || named.reads(blob{Name: "t"}) || small.reads(blob{}) {
		t.Error("reads does not report whether a version is read from a copy")
	}
	if _, err := decodeIndex(map[string]string{annotationRecord: `{"format":2}`}); err == nil {
		t.Error("a record of a newer format is read")
	}
}
