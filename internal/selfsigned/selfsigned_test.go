package selfsigned

import (
	"os"
	"path/filepath"
	"testing"

	certutil "k8s.io/client-go/util/cert"
)

func TestTheFilesOfAFolderAreServedOnceTheyAreThere(t *testing.T) {
	folder := t.TempDir()
	get := Unless(FromFolder(folder))
	own, err := get(nil)
	if err != nil || own.Leaf.DNSNames[0] != "localhost" {
		t.Fatalf("without files: %v, %v", own, err)
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("metrics.test.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if served, err := get(nil); err != nil || served.Leaf.DNSNames[0] != "metrics.test.svc" {
		t.Errorf("with files: %v, %v", served, err)
	}
}
