package servingcert

import (
	"bytes"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestBundle(t *testing.T) {
	first, second, third, fourth := made(t, names, start).authority, made(t, names, start.Add(time.Minute)).authority,
		made(t, names, start.Add(2*time.Minute)).authority, made(t, names, start.Add(3*time.Minute)).authority
	now := start.Add(3 * time.Minute)
	tcs := map[string]struct {
		trusted, authority []byte
		now                time.Time
		want               []byte
		wantLeft           time.Duration
	}{
		"nobody was trusted":                                 {nil, first, start, first, 0},
		"the authority is trusted already":                   {first, first, start, first, 0},
		"the one before stays for a while":                   {first, second, start.Add(time.Minute), join(second, first), Overlap},
		"it still stays":                                     {join(second, first), second, start.Add(Overlap), join(second, first), time.Minute},
		"it goes after that":                                 {join(second, first), second, start.Add(Overlap + time.Minute), second, 0},
		"one that has run out goes at once":                  {first, made(t, names, start.Add(authorityValidity+day)).authority, start.Add(authorityValidity + day), nil, 0},
		"of many the newest stay, the newest first":          {join(first, second, third), fourth, now, join(fourth, third, second), Overlap},
		"what is no certificate goes":                        {[]byte("somebody's note\n"), first, start, first, 0},
		"order does not matter for who is trusted already":   {join(first, second), second, start.Add(time.Minute), join(second, first), Overlap},
		"an authority that is trusted twice is written once": {join(first, first), first, start, first, 0},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if tc.want == nil {
				tc.want = tc.authority
			}
			got, left := bundle(tc.trusted, tc.authority, tc.now)
			if !bytes.Equal(got, join(tc.want)) || left != tc.wantLeft {
				t.Errorf("got %d certificates for %s, want %d for %s", len(certificatesIn(got)), left, len(certificatesIn(tc.want)), tc.wantLeft)
			}
			if again, _ := bundle(got, tc.authority, tc.now); !bytes.Equal(got, again) {
				t.Error("a second time must change nothing")
			}
		})
	}
}

// join returns certificates as a bundle has them.
func join(parts ...[]byte) []byte {
	var out []byte
	for _, part := range parts {
		out = append(append(out, bytes.TrimSpace(part)...), '\n')
	}
	return out
}

func TestTrustIsOfEveryWebhook(t *testing.T) {
	old, present := made(t, names, start).authority, made(t, names, start.Add(time.Minute)).authority
	now := start.Add(2 * time.Minute)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 3)}
	configuration.Webhooks[1].ClientConfig.CABundle = join(present)
	configuration.Webhooks[2].ClientConfig.CABundle = join(old)
	changed, holds := trust(configuration, present, now)
	if want := Overlap - time.Minute; !changed || holds != want {
		t.Errorf("changed is %v, holds for %s, want %s", changed, holds, want)
	}
	for i, want := range [][]byte{join(present), join(present), join(present, old)} {
		if got := configuration.Webhooks[i].ClientConfig.CABundle; !bytes.Equal(got, want) {
			t.Errorf("webhook %d trusts %d authorities, want %d", i, len(certificatesIn(got)), len(certificatesIn(want)))
		}
	}
	if changed, _ := trust(configuration, present, now); changed {
		t.Error("a second time must change nothing")
	}
}
