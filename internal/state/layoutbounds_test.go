package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// Anyone who can write the Secret can store any record, so check its numbers before using them.
func TestARecordIsBounded(t *testing.T) {
	const huge, beyond = "900000000", "65"
	entry := func(fields string) string { return `{"serial":1,"lineage":"l","sha256":"s",` + fields + `}` }
	for name, tc := range map[string]struct{ record, want string }{
		"a copy of many Secrets": {`"current":` + entry(`"blob":{"name":"c","chunks":`+huge+`}`),
			`the copy "c" has 900000000 Secrets in it, and a copy has 1 to 64`},
		"a copy of one Secret too many": {`"current":` + entry(`"blob":{"name":"c","chunks":`+beyond+`}`),
			`the copy "c" has 65 Secrets`},
		"a copy of fewer than none": {`"current":` + entry(`"blob":{"name":"c","chunks":-1}`),
			`the copy "c" has -1 Secrets`},
		"a copy of none": {`"current":` + entry(`"blob":{"name":"c"}`), `the copy "c" has 0 Secrets`},
		"a copy of an earlier version": {`"versions":[` + entry(`"blob":{"name":"c","chunks":`+huge+`}`) + `]`,
			`the copy "c" has 900000000 Secrets`},
		"a copy to be removed": {`"trash":[{"name":"c","chunks":` + huge + `}]`,
			`the copy "c" has 900000000 Secrets`},
		"parts that may exist": {`"parts":` + huge, "it says that the state has 900000000 parts, and a " +
			"state has 63 at most"},
		"fewer parts than none": {`"parts":-1`, "has -1 parts"},
		"parts of the state": {`"current":` + entry(`"parts":`+huge),
			"the version 1 has 900000000 parts in it"},
		"many versions": {`"versions":[` + strings.Repeat(entry(`"size":1`)+",", 64) +
			entry(`"size":1`) + `]`, "it lists 65 earlier versions, and 64 are kept at most"},
		"a serial that ends all others": {`"current":{"serial":18446744073709551615}`,
			"it has a version with the serial 18446744073709551615, and serials end at 9007199254740992"},
		"a size that no state has": {`"current":` + entry(`"size":`+huge),
			"the version 1 has 900000000 bytes in it"},
		"a size below zero": {`"current":` + entry(`"size":-1`), "the version 1 has -1 bytes"},
		"more resources than a state has": {`"current":` + entry(`"managed":`+huge),
			"the version 1 has 900000000 resources in it"},
		"a number that is none": {`"parts":1e999`, "cannot unmarshal number 1e999"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeIndex(map[string]string{annotationRecord: `{"format":1,` + tc.record + `}`})
			if err == nil || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), annotationRecord) {
				t.Errorf("got %v, want %q in it and the annotation", err, tc.want)
			}
		})
	}
}

// The store's record of the largest possible state must pass the reader's checks.
func TestTheLargestStateFitsTheBounds(t *testing.T) {
	codec, noise := contentCodec{Keys: keyOf(t, "k")}, sealLabel{Lineage: strings.Repeat("l", 36)}
	raw := bytes.Repeat([]byte("0123456789abcdef"), statefile.MaxBytes/16)
	packed, _, err := codec.Pack(raw, noise)
	if err != nil {
		t.Fatal(err)
	}
	const smallest = 320 << 10 // a third of a store's chunks
	have := headIndex{}
	for serial := range uint64(5) {
		incoming := incomingState{State: &statefile.State{Serial: serial}, Raw: raw,
			Packed: append(bytes.Clone(packed), byte(serial)), Encrypted: true}
		have = planPut(have, nil, incoming, layoutLimits{Versions: 3, Chunk: smallest},
			func(e indexEntry, chunks int) indexBlob {
				return indexBlob{Name: fmt.Sprint(e.Serial), Chunks: chunks}
			}).Index
	}
	text, err := have.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := decodeIndex(map[string]string{annotationRecord: text})
	if err != nil {
		t.Fatal(err)
	}
	have.Format = formatEncrypted
	if diff := cmp.Diff(have, read); diff != "" || len(read.Versions) != 3 || len(read.Trash) != 1 {
		t.Errorf("it is read as another (-want +got):\n%s", diff)
	}
	if found, err := codec.Unpack(packed); err != nil || !bytes.Equal(found.Raw, raw) {
		t.Errorf("it cannot be read: %v", err)
	}
}

func TestContentIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  []byte
		want string
	}{
		"a bomb of zeros":   {make([]byte, 30<<20), "it is larger than 16 MiB"},
		"one byte too many": {make([]byte, maxUnpacked+1), "it has 16777217 bytes and may have 16777216"},
		"values of three bytes each": {[]byte(`{"resources":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`),
			"values and may have 1048576"},
		"such, and said to be a state": {[]byte(`{"encryption_version":"v0","meta":{` +
			strings.Repeat(`"":"",`, 1<<20) + `"":""}}`), "values and may have 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := packPlain(tc.raw)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (contentCodec{}).Unpack(packed); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
			opened, err := contentCodec{}.Open(map[string][]byte{"a": packed}, true)
			if err != nil || !bytes.Equal(opened["a"].Raw, packed) {
				t.Errorf("as an attachment it is %d bytes, %v; want it as it is", len(opened["a"].Raw), err)
			}
		})
	}
}

// FuzzDecodeIndex looks for an accepted record that is impossible.
func FuzzDecodeIndex(f *testing.F) {
	f.Add(
		`{"format":1,"current":{"serial":1,"blob":{"name":"c","chunks":2}},"parts":1,"trash":[{"name":"d","chunks":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		read, err := decodeIndex(map[string]string{annotationRecord: text})
		if err != nil {
			return
		}
		if read.Cleaned().Parts > MaxChunks || read.Current.Chunks() > MaxChunks || read.Parts > MaxChunks {
			t.Errorf("it names too many Secrets: %+v", read)
		}
		if raw, err := json.Marshal(read); err != nil || len(raw) > 64*len(text)+1024 {
			t.Errorf("%d bytes became %d (%v)", len(text), len(raw), err)
		}
	})
}
