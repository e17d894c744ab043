package state

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

const state = `{"version":4,"serial":7,"lineage":"l","outputs":{"password":{"value":"correct horse","type":"string"}}}`

// keysOf returns keys made from seeds; the first one encrypts.
func keysOf(t testing.TB, seeds ...string) *Keys {
	t.Helper()
	folder := t.TempDir()
	for i, seed := range seeds {
		if err := os.WriteFile(filepath.Join(folder, string(rune('a'+i))), []byte(strings.Repeat(seed, 40)+"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := ReadKeys(folder)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func encrypt(t *testing.T, keys *Keys, content string) []byte {
	t.Helper()
	serial := uint64(7)
	encrypted, err := keys.Encrypt([]byte(content), sealLabel{Serial: &serial, Lineage: "l"})
	if err != nil {
		t.Fatal(err)
	}
	return encrypted
}

func TestWhatIsEncryptedIsDecrypted(t *testing.T) {
	keys := keysOf(t, "k")
	encrypted := encrypt(t, keys, state)
	if !IsEncrypted(encrypted) || bytes.Contains(encrypted, []byte("password")) || IsEncrypted([]byte(state)) {
		t.Fatalf("it is not encrypted: %s", encrypted)
	}
	content, first, err := keys.Decrypt(encrypted)
	if err != nil || string(content) != state || !first {
		t.Errorf("got %s, %v, %v", content, first, err)
	}
	if again := encrypt(t, keys, state); bytes.Equal(again, encrypted) {
		t.Error("the same content is encrypted to the same bytes twice")
	}
	var label sealLabel
	if err := json.Unmarshal(encrypted, &label); err != nil || *label.Serial != 7 || label.Lineage != "l" {
		t.Errorf("the label is %v (%v)", label, err)
	}
}

// edited returns manipulated encrypted content.
func edited(t *testing.T, encrypted []byte, change func(*envelope)) []byte {
	t.Helper()
	var read envelope
	if err := json.Unmarshal(encrypted, &read); err != nil {
		t.Fatal(err)
	}
	change(&read)
	raw, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func withParameters(t *testing.T, change func(*parameters)) func(*envelope) {
	return func(e *envelope) {
		with, err := parseParameters(e.Meta[metaKey])
		if err != nil {
			t.Fatal(err)
		}
		change(with)
		if e.Meta[metaKey], err = json.Marshal(with); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatCannotBeDecrypted(t *testing.T) {
	long.Test(t)
	keys := keysOf(t, "k")
	good := encrypt(t, keys, state)
	for name, tc := range map[string]struct {
		keys      *Keys
		encrypted []byte
		want      string
	}{
		"another key": {keysOf(t, "x", "y"), good, "no key of --state-key-file (2) opens it: add the key"},
		"no key":      {nil, good, "there is no key: set --state-key-file"},
		"an edited bit": {keys, edited(t, good, func(e *envelope) { e.Data[len(e.Data)-20] ^= 1 }),
			"no key of --state-key-file (1) opens it"},
		"cut short": {keys, edited(t, good, func(e *envelope) { e.Data = e.Data[:5] }),
			"no key of --state-key-file (1) opens it"},
		"no content": {keys, edited(t, good, func(e *envelope) { e.Data = nil }),
			"no key of --state-key-file (1) opens it"},
		"another salt": {keys, edited(t, good, withParameters(t, func(p *parameters) { p.Salt[0] ^= 1 })),
			"no key of --state-key-file (1) opens it"},
		"a format that is not known": {
			keys, edited(t, good, func(e *envelope) { e.Version = "v1" }), `the unknown format "v1"`,
		},
		"no key provider": {keys, edited(t, good, func(e *envelope) { e.Meta = nil }),
			"nothing says how its key is derived"},
		"another key provider": {
			keys, edited(t, good, func(e *envelope) {
				e.Meta = map[string][]byte{"key_provider.aws_kms.k": []byte(`{"ciphertext_blob":"AA=="}`)}
			}),
			`not one of OpenTofu's key_provider "pbkdf2"`,
		},
		"iterations without end": {keys,
			edited(t, good, withParameters(t, func(p *parameters) { p.Iterations = 1 << 40 })), "may take 5000000"},
		"negative iterations": {keys, edited(t, good, withParameters(t, func(p *parameters) { p.Iterations = -1 })),
			"its key takes -1 iterations"},
		"a huge salt": {keys,
			edited(t, good, withParameters(t, func(p *parameters) { p.Salt = make([]byte, 1<<20) })), "may have 1024"},
		"another hash function": {keys, edited(t, good, withParameters(t, func(p *parameters) { p.Hash = "md5" })),
			`unknown hash function "md5"`},
		"a huge key": {keys,
			edited(t, good, withParameters(t, func(p *parameters) { p.KeyLength = 1 << 30 })), "may have 16, 24 or 32"},
		"no document": {keys, []byte(`{"encryption_version":`), "unknown format"},
	} {
		t.Run(name, func(t *testing.T) {
			content, _, err := tc.keys.Decrypt(tc.encrypted)
			if content != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v; want %q", content, err, tc.want)
			}
		})
	}
}

func TestAKeyThatIsReplaced(t *testing.T) {
	long.Test(t)
	before, after := keysOf(t, "a"), keysOf(t, "b", "a")
	content, first, err := after.Decrypt(encrypt(t, before, state))
	if err != nil || string(content) != state || first {
		t.Errorf("got %s, %v, %v", content, first, err)
	}
	if _, first, err = after.Decrypt(encrypt(t, after, state)); err != nil || !first {
		t.Errorf("the first key does not encrypt: %v", err)
	}
	off := after.DecryptOnly()
	if content, first, err = off.Decrypt(encrypt(t, after, state)); err != nil || string(content) != state || first ||
		off.Encrypts() {
		t.Errorf("switched off: got %s, %v, %v", content, first, err)
	}
	if _, err := off.Encrypt([]byte(state), sealLabel{}); err == nil {
		t.Error("it encrypts though that is switched off")
	}
}

// Each salt costs a key derivation, so a process keeps the first one that it finds.
func TestASaltIsKept(t *testing.T) {
	long.Test(t)
	saltOf := func(encrypted []byte) (salt string) {
		edited(t, encrypted, withParameters(t, func(p *parameters) { salt = string(p.Salt) }))
		return salt
	}
	before := encrypt(t, keysOf(t, "k"), state)
	next := keysOf(t, "k")
	if _, _, err := next.Decrypt(before); err != nil {
		t.Fatal(err)
	}
	if saltOf(encrypt(t, next, state)) != saltOf(before) || len(next.derived) != 1 {
		t.Errorf("another salt is used; %d keys were derived", len(next.derived))
	}
	replaced := keysOf(t, "l", "k")
	if _, _, err := replaced.Decrypt(before); err != nil {
		t.Fatal(err)
	}
	if saltOf(encrypt(t, replaced, state)) == saltOf(before) {
		t.Error("a new key uses the salt of the old one")
	}
}

func TestKeysAreUsedConcurrently(t *testing.T) {
	long.Test(t)
	keys := keysOf(t, "k")
	encrypted := encrypt(t, keysOf(t, "k"), state)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if content, _, err := keys.Decrypt(encrypted); err != nil || string(content) != state {
				t.Errorf("got %s, %v", content, err)
			}
			if _, err := keys.Encrypt([]byte(state), sealLabel{}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestIs(t *testing.T) {
	for content, want := range map[string]bool{
		"":                                     false,
		"{}":                                   false,
		`{"encryption_version":""}`:            false,
		`{"encryption_version":"v9"}`:          true,
		`{"a":{"encryption_version":"v0"}}`:    false,
		`{"a":"\"encryption_version\":\"v"}`:   false,
		`["encryption_version"]`:               false,
		`{"encryption_version":"v0"`:           false,
		`{"meta":{},"encryption_version":"1"}`: true,
	} {
		if got := IsEncrypted([]byte(content)); got != want {
			t.Errorf("%s: got %v", content, got)
		}
	}
}

func TestDigest(t *testing.T) {
	one, other := keysOf(t, "a"), keysOf(t, "b")
	plain := (*Keys)(nil).Digest([]byte(state))
	if len(plain) != 64 || one.Digest([]byte(state)) == plain ||
		one.Digest([]byte(state)) == other.Digest([]byte(state)) ||
		one.Digest([]byte(state)) != keysOf(t, "a", "b").Digest([]byte(state)) ||
		one.DecryptOnly().Digest([]byte(state)) != plain {
		t.Error("a digest is not one of the first key")
	}
}

func TestRead(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := strings.Repeat("k", 32)
	for name, tc := range map[string]struct{ path, want string }{
		"a line":                  {write("line", good), ""},
		"a line with its end":     {write("end", good+"\n"), ""},
		"a line of other systems": {write("crlf", good+"\r\n"), ""},
		"a short line": {write("short", good[1:]+"\n"), "short: it has 31 bytes and must have 32 to 4096; " +
			"write a new one with 'openssl rand -base64 32 >FILE'"},
		"a long line": {write("long", strings.Repeat(good, 200)), "must have 32 to 4096"},
		"two lines":   {write("two", good+"\n"+good), "must be one line of printable text"},
		"random bytes": {write("random", strings.Repeat("\xff\x00", 16)),
			"must be one line of printable text"},
		"no file": {filepath.Join(folder, "none"), "reading the key of states: stat"},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ReadKeys(tc.path)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err == nil && string(keys.passphrases[0]) != good {
				t.Errorf("the key is %q", keys.passphrases[0])
			}
		})
	}
}

// BenchmarkEncrypt measures encryption with a derived key; 20 KiB is the state of a Machine with user data.
func BenchmarkEncrypt(b *testing.B) {
	keys, content := keysOf(b, "k"), bytes.Repeat([]byte("some state "), 20<<10/11)
	if _, err := keys.Encrypt(content, sealLabel{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := keys.Encrypt(content, sealLabel{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecrypt(b *testing.B) {
	keys, content := keysOf(b, "k"), bytes.Repeat([]byte("some state "), 20<<10/11)
	encrypted, err := keys.Encrypt(content, sealLabel{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, _, err := keys.Decrypt(encrypted); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeriveAKey measures the first use of a key in a process.
func BenchmarkDeriveAKey(b *testing.B) {
	with := &parameters{Salt: make([]byte, saltLength), Iterations: iterations, Hash: hashSHA512, KeyLength: keyLength}
	for b.Loop() {
		if _, err := derive([]byte(strings.Repeat("k", 40)), with); err != nil {
			b.Fatal(err)
		}
	}
}
