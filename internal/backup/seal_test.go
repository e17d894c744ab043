package backup

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

func TestABackupOpensForItsRecipientsOnly(t *testing.T) {
	own, other := pair(t), pair(t)
	sshRecipient, sshIdentity := sshPair(t)
	recipients := filepath.Join(t.TempDir(), "recipients")
	if err := os.WriteFile(recipients, []byte("# those of the team\n\n"+own.recipient+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := ParseRecipients([]string{sshRecipient}, []string{recipients})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "backup")
	folder, err := CreateFolder(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(small().Write(folder, to, true, false), folder.Close()); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{own.file: "", sshIdentity: "", other.file: "it is encrypted for others than --identity"} {
		with, err := ReadIdentities([]string{file})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Load(name, with)
		if want == "" && (err != nil || !bytes.Equal(b.States[0].State, []byte(raw))) {
			t.Errorf("with %s: %+v, %v", file, b, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with %s: %v, want %q", file, err, want)
		}
	}
	clear, err := os.ReadFile(filepath.Join(name, indexName))
	if err != nil || bytes.Contains(clear, []byte("lineage")) {
		t.Errorf("the index is %s, %v", clear, err)
	}
}

func TestAnIdentityThatCannotBeReadIsNotShown(t *testing.T) {
	for name, content := range map[string]string{"no identity": "AGE-SECRET-KEY-1WRONG\n", "no SSH key": "-----BEGIN OPENSSH PRIVATE KEY-----\nWRONG\n-----END OPENSSH PRIVATE KEY-----\n"} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadIdentities([]string{file}); err == nil || strings.Contains(err.Error(), "WRONG") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseRecipients(nil, []string{"/dev/null"}); err == nil || !strings.Contains(err.Error(), "has no recipients") {
		t.Errorf("an empty file of recipients: %v", err)
	}
}

type agePair struct{ recipient, file string }

func pair(t *testing.T) agePair {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(file, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return agePair{identity.Recipient().String(), file}
}

// sshPair returns a public SSH key, and the file of its private key.
func sshPair(t *testing.T) (recipient, file string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "id_ed25519")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	var wire []byte
	for _, part := range [][]byte{[]byte("ssh-ed25519"), public} {
		wire = append(binary.BigEndian.AppendUint32(wire, uint32(len(part))), part...) //nolint:gosec // both are short
	}
	return "ssh-ed25519 " + base64.StdEncoding.EncodeToString(wire), file
}
