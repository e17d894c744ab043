package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func keyOf(t testing.TB, seed string) *Keys {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Repeat(seed, 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// exampleState is as large and as repetitive as the state of a virtual machine with user data.
func exampleState() []byte {
	var attributes strings.Builder
	for i := range 400 {
		fmt.Fprintf(&attributes, "            \"attribute_%d_of_the_instance\": \"%x\",\n", i, i*i*7919)
	}
	return fmt.Appendf(nil,
		`{"version": 4, "serial": 3, "lineage": "l", "resources": [{"mode": "managed", "type": "instance", "name": "this", "instances": [{"attributes": {
%s            "id": "i-1"}}]}]}`, attributes.String())
}

func TestCodecReadsWhateverWasWritten(t *testing.T) {
	raw := exampleState()
	plain, keyed := contentCodec{}, contentCodec{Keys: keyOf(t, "k")}
	for name, writer := range map[string]contentCodec{"plain": plain, "encrypted": keyed} {
		packed, encrypted, err := writer.Pack(raw, sealLabel{Lineage: "l"})
		if err != nil || encrypted != (name == "encrypted") {
			t.Fatalf("%s: %v, %v", name, encrypted, err)
		}
		found, err := keyed.Unpack(packed)
		if err != nil || !bytes.Equal(found.Raw, raw) || found.Encrypted != encrypted || found.Current != encrypted {
			t.Errorf("%s: with the key: %v, %v, %v", name, found.Encrypted, found.Current, err)
		}
		for other, reader := range map[string]contentCodec{"no key": plain, "another key": {Keys: keyOf(t, "x")}} {
			found, err := reader.Unpack(packed)
			if _, lost := errors.AsType[*keyError](err); lost != encrypted || !encrypted &&
				!bytes.Equal(found.Raw, raw) {
				t.Errorf("%s: with %s: %v", name, other, err)
			}
		}
	}
}

// BenchmarkCodec measures storing and reading a state without the API server, and reports the bytes in the Secret.
func BenchmarkCodec(b *testing.B) {
	raw := exampleState()
	for name, codec := range map[string]contentCodec{"plain": {}, "encrypted": {Keys: keyOf(b, "k")}} {
		packed, _, err := codec.Pack(raw, sealLabel{Lineage: "l"})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("save/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := codec.Pack(raw, sealLabel{Lineage: "l"}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(packed)), "bytes")
		})
		b.Run("load/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := codec.Unpack(packed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
