package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// newPKI creates a data folder with a complete pki/.
func newPKI(t *testing.T) layout {
	t.Helper()
	l := fakeLayout(t, nil)
	if changed, err := ensurePKI(l); err != nil || !changed {
		t.Fatalf("making the certificates: changed %v, error %v", changed, err)
	}
	return l
}

func contents(t *testing.T, l layout) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(l.pki())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(l.pki(), entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(data)
	}
	return files
}

func TestCertificatesAreTrustedForWhatTheyAreFor(t *testing.T) {
	l := newPKI(t)
	ca, err := tls.LoadX509KeyPair(l.cert(certCA), l.key(certCA))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	for _, wanted := range certificates() {
		pair, err := tls.LoadX509KeyPair(l.cert(wanted.name), l.key(wanted.name))
		if err != nil {
			t.Fatal(err)
		}
		verify := func(use x509.ExtKeyUsage, host string) error {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{use},
			})
			return err
		}
		if err := verify(x509.ExtKeyUsageServerAuth, "127.0.0.1"); (err == nil) != wanted.server {
			t.Errorf("%s as a server on loopback: %v, want it trusted: %v", wanted.name, err, wanted.server)
		}
		if err := verify(x509.ExtKeyUsageClientAuth, ""); (err == nil) != wanted.client {
			t.Errorf("%s as a client: %v, want it trusted: %v", wanted.name, err, wanted.client)
		}
	}
}

func TestOnlyTheAdministratorIsAMaster(t *testing.T) {
	for _, wanted := range certificates() {
		if (len(wanted.groups) > 0) != (wanted.name == certAdmin) {
			t.Errorf("%s is in the groups %v", wanted.name, wanted.groups)
		}
	}
}

func TestPrivateFilesArePrivate(t *testing.T) {
	l := newPKI(t)
	for name := range contents(t, l) {
		info, err := os.Stat(filepath.Join(l.pki(), name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v), want 0600", name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(l.pki()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("pki has mode %v (%v), want 0700", info.Mode(), err)
	}
}

func TestEnsurePKIReplacesOnlyWhatIsIncomplete(t *testing.T) {
	for gone, wantKept := range map[string][]string{
		"":                    nil, // everything
		"kwok.crt":            {"service-account.key"},
		"etcd.key":            {"service-account.key"},
		"ca.crt":              {"service-account.key"},
		"service-account.key": {},
	} {
		t.Run(gone, func(t *testing.T) {
			l := newPKI(t)
			before := contents(t, l)
			if wantKept == nil {
				wantKept = slices.Collect(maps.Keys(before))
			} else if err := os.Remove(filepath.Join(l.pki(), gone)); err != nil {
				t.Fatal(err)
			}
			if created, err := ensurePKI(l); err != nil || created != (gone != "") {
				t.Fatalf("got %v, %v", created, err)
			}
			after := contents(t, l)
			if len(after) != len(before) {
				t.Errorf("got %d files, want %d", len(after), len(before))
			}
			for name, data := range after {
				if kept := before[name] == data; kept != slices.Contains(wantKept, name) {
					t.Errorf("%s is kept: %t, want %t", name, kept, !kept)
				}
			}
		})
	}
}
