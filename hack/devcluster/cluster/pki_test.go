package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var issueTime = time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)

// newPKI creates a data folder with a complete pki/.
func newPKI(t *testing.T) layout {
	t.Helper()
	l := fakeLayout(t, nil)
	if changed, err := ensurePKI(l, issueTime); err != nil || !changed {
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
				Roots: roots, CurrentTime: issueTime, DNSName: host, KeyUsages: []x509.ExtKeyUsage{use},
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

func TestEnsurePKIReplacesOnlyWhatItMust(t *testing.T) {
	all := []string{
		"admin", "etcd", "kube-apiserver", "kube-apiserver-etcd-client", "kube-controller-manager",
		"kube-scheduler", "kwok",
	}
	cases := map[string]struct {
		later       time.Duration
		spoil       func(t *testing.T, l layout)
		wantChanged []string // without extensions
	}{
		"nothing when all is well":    {later: certificateLifetime - renewBefore - time.Hour},
		"certificates near their end": {later: certificateLifetime - renewBefore, wantChanged: all},
		"everything when the authority ends": {
			later: authorityLifetime - renewBefore, wantChanged: append([]string{certCA}, all...),
		},
		"a certificate that is gone":      {spoil: remove("kwok.crt"), wantChanged: []string{"kwok"}},
		"a certificate whose key is gone": {spoil: remove("etcd.key"), wantChanged: []string{"etcd"}},
		"a certificate with another one's key": {
			spoil: overwrite("kwok.key", "etcd.key"), wantChanged: []string{"kwok"},
		},
		"a certificate of another user": {
			spoil: overwritePair("kwok", "kube-apiserver-etcd-client"), wantChanged: []string{"kwok"},
		},
		"a certificate of a user with more rights": {spoil: func(t *testing.T, l layout) {
			issueBy(t, l, l, certificate{name: "kwok", user: kwokUser,
				groups: []string{"system:masters"}, client: true})
		}, wantChanged: []string{"kwok"}},
		"a certificate of another authority": {spoil: func(t *testing.T, l layout) {
			issueBy(t, newPKI(t), l, certificate{name: "kwok", user: kwokUser, client: true})
		}, wantChanged: []string{"kwok"}},
		"everything when the authority is gone": {
			spoil: remove("ca.key"), wantChanged: append([]string{certCA}, all...),
		},
		"the key for tokens": {
			spoil: remove("service-account.key"), wantChanged: []string{keyTokens},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newPKI(t)
			before := contents(t, l)
			if tc.spoil != nil {
				tc.spoil(t, l)
			}
			changed, err := ensurePKI(l, issueTime.Add(tc.later))
			if err != nil {
				t.Fatal(err)
			}
			if changed != (len(tc.wantChanged) > 0) {
				t.Errorf("changed is %v, want %v", changed, !changed)
			}
			want := map[string]bool{}
			for _, name := range tc.wantChanged {
				want[name+".key"] = true
				if name != keyTokens {
					want[name+".crt"] = true
				}
			}
			got := map[string]bool{}
			for name, data := range contents(t, l) {
				if before[name] != data {
					got[name] = true
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("replaced files differ (-want +got):\n%s", diff)
			}
		})
	}
}

func remove(name string) func(*testing.T, layout) {
	return func(t *testing.T, l layout) {
		t.Helper()
		if err := os.Remove(filepath.Join(l.pki(), name)); err != nil {
			t.Fatal(err)
		}
	}
}

func overwrite(name, other string) func(*testing.T, layout) {
	return func(t *testing.T, l layout) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(l.pki(), name), []byte(contents(t, l)[other]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func overwritePair(name, other string) func(*testing.T, layout) {
	return func(t *testing.T, l layout) {
		t.Helper()
		overwrite(name+".crt", other+".crt")(t, l)
		overwrite(name+".key", other+".key")(t, l)
	}
}

// issueBy issues a certificate by one folder's authority into another folder.
func issueBy(t *testing.T, by, into layout, wanted certificate) {
	t.Helper()
	ca, _, err := ensureAuthority(by, issueTime)
	if err != nil {
		t.Fatal(err)
	}
	if err := issue(into, wanted, ca, issueTime); err != nil {
		t.Fatal(err)
	}
}
