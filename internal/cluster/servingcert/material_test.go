package servingcert

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const day = 24 * time.Hour

var (
	start = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)
	names = maker{names: []string{"hooks.test.svc", "localhost"}}
)

// made returns new material of a time.
func made(t *testing.T, by maker, at time.Time) material {
	t.Helper()
	renewed, changed, err := by.renew(material{}, at)
	if err != nil || !changed {
		t.Fatalf("changed is %v, err is %v", changed, err)
	}
	return renewed
}

func TestRenewChangesWhatIsNoLongerGood(t *testing.T) {
	first := made(t, names, start)
	other := made(t, names, start)
	tcs := map[string]struct {
		given material
		after time.Duration
		by    maker
		// wantAuthority and wantCertificate say what stays.
		wantAuthority, wantCertificate bool
	}{
		"good material stays":                                    {first, 0, names, true, true},
		"it stays until a third of its time is left":             {first, 60*day - time.Minute, names, true, true},
		"a certificate is renewed before it runs out":            {first, 61 * day, names, true, false},
		"one that has run out is renewed, too":                   {first, 400 * day, names, true, false},
		"an authority is renewed half a year before it runs out": {first, authorityValidity - 179*day, names, false, false},
		"names that are new ask for a certificate":               {first, 0, maker{names: []string{"other.test.svc"}}, true, false},
		"a name more asks for a certificate":                     {first, 0, maker{names: append([]string{"more.svc"}, names.names...)}, true, false},
		"a clock that was ahead is no reason to wait":            {first, -2 * time.Hour, names, false, false},
		"a certificate of another authority is renewed":          {material{first.authority, first.authorityKey, other.certificate, other.key}, 0, names, true, false},
		"a key that is not the certificate's is renewed":         {material{first.authority, first.authorityKey, first.certificate, other.key}, 0, names, true, false},
		"an authority without its key is of no use":              {material{first.authority, nil, first.certificate, first.key}, 0, names, false, false},
		"an authority with another's key is of no use":           {material{first.authority, other.authorityKey, first.certificate, first.key}, 0, names, false, false},
		"text that is no PEM is replaced":                        {material{[]byte("a"), []byte("b"), []byte("c"), []byte("d")}, 0, names, false, false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			now := start.Add(tc.after)
			got, changed, err := tc.by.renew(tc.given, now)
			if err != nil {
				t.Fatal(err)
			}
			if changed == tc.wantCertificate {
				t.Errorf("changed is %v", changed)
			}
			if same := string(got.authority) == string(tc.given.authority); same != tc.wantAuthority {
				t.Errorf("the authority stays: %v, want %v", same, tc.wantAuthority)
			}
			if same := string(got.certificate) == string(tc.given.certificate); same != tc.wantCertificate {
				t.Errorf("the certificate stays: %v, want %v", same, tc.wantCertificate)
			}
			for _, name := range tc.by.names {
				verify(t, got, name, now)
			}
			if _, again, _ := tc.by.renew(got, now); again {
				t.Error("a second time must change nothing")
			}
		})
	}
}

// verify sees to it that who trusts the authority trusts the server, now and when it is next looked at.
func verify(t *testing.T, m material, name string, now time.Time) {
	t.Helper()
	pair, err := m.pair()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(m.authority)
	for _, at := range []time.Time{now, now.Add(-skew + time.Second), now.Add(renewalIn(m, now))} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: at}); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
}

func TestRenewalIn(t *testing.T) {
	m := made(t, names, start)
	for after, want := range map[time.Duration]time.Duration{
		0:        60 * day,
		59 * day: day,
		90 * day: 0,
	} {
		if got := renewalIn(m, start.Add(after)); got != want {
			t.Errorf("after %s: got %s, want %s", after, got, want)
		}
	}
	late := start.Add(authorityValidity - authorityAhead - day)
	m, _, err := names.renew(m, late)
	if err != nil {
		t.Fatal(err)
	}
	if got := renewalIn(m, late); got != day {
		t.Errorf("an authority that ends first: got %s, want %s", got, day)
	}
}

func TestSecretKeepsMaterial(t *testing.T) {
	m := made(t, names, start)
	secret := &corev1.Secret{Data: map[string][]byte{"other": []byte("stays")}}
	m.into(secret)
	if got := materialOf(secret); string(got.authorityKey) != string(m.authorityKey) || string(got.key) != string(m.key) {
		t.Error("what was written is not what is read")
	}
	want := map[string]bool{"ca.crt": true, "ca.key": true, "tls.crt": true, "tls.key": true, "other": true}
	got := map[string]bool{}
	for key, value := range secret.Data {
		got[key] = len(value) > 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
