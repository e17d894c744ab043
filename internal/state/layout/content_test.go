package layout

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/state/encryption"
)

func keysOf(t testing.TB, seed string) *encryption.Keys {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Repeat(seed, 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := encryption.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// exampleState is about as large, and as repetitive, as that of a virtual machine of a cloud with user data.
func exampleState() []byte {
	var attributes strings.Builder
	for i := range 400 {
		fmt.Fprintf(&attributes, "            \"attribute_%d_of_the_instance\": \"%x\",\n", i, i*i*7919)
	}
	return fmt.Appendf(nil, `{"version": 4, "serial": 3, "lineage": "l", "resources": [{"mode": "managed", "type": "instance", "name": "this", "instances": [{"attributes": {
%s            "id": "i-1"}}]}]}`, attributes.String())
}

func TestCodecReadsWhateverWasWritten(t *testing.T) {
	raw := exampleState()
	plain, keyed := Codec{}, Codec{Keys: keysOf(t, "k")}
	for name, writer := range map[string]Codec{"plain": plain, "encrypted": keyed} {
		packed, encrypted, err := writer.Pack(raw, encryption.Label{Lineage: "l"})
		if err != nil || encrypted != (name == "encrypted") {
			t.Fatalf("%s: %v, %v", name, encrypted, err)
		}
		found, err := keyed.Unpack(packed)
		if err != nil || !bytes.Equal(found.Raw, raw) || found.Encrypted != encrypted || found.Current != encrypted {
			t.Errorf("%s: with the key: %v, %v, %v", name, found.Encrypted, found.Current, err)
		}
		for other, reader := range map[string]Codec{"no key": plain, "another key": {Keys: keysOf(t, "x")}} {
			found, err := reader.Unpack(packed)
			if _, lost := errors.AsType[*KeyError](err); lost != encrypted || !encrypted && !bytes.Equal(found.Raw, raw) {
				t.Errorf("%s: with %s: %v", name, other, err)
			}
		}
	}
}

// What it costs to store and to read a state, without the API server. Each has the bytes in the Secret.
func BenchmarkCodec(b *testing.B) {
	raw := exampleState()
	for name, codec := range map[string]Codec{"plain": {}, "encrypted": {Keys: keysOf(b, "k")}} {
		packed, _, err := codec.Pack(raw, encryption.Label{Lineage: "l"})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("save/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := codec.Pack(raw, encryption.Label{Lineage: "l"}); err != nil {
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
