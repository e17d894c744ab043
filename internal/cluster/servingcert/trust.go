package servingcert

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Overlap is how long an authority stays trusted after another has taken its place.
const Overlap = time.Hour

// maxOld bounds how many old authorities are trusted beside the present one.
const maxOld = 2

// bundle returns what the API server shall trust in place of what it trusts now: the authority, and
// for a while those before it. It also returns how long that holds; zero for as long as the
// authority does.
func bundle(trusted, authority []byte, now time.Time) ([]byte, time.Duration) {
	out := bytes.TrimSpace(authority)
	left := time.Duration(0)
	if present, err := parse(authority); err == nil {
		left = present.NotBefore.Add(skew + Overlap).Sub(now)
	}
	old := slices.DeleteFunc(certificatesIn(trusted), func(c *x509.Certificate) bool {
		return now.After(c.NotAfter) || bytes.Equal(encode(c), out)
	})
	if left <= 0 || len(old) == 0 {
		return append(slices.Clone(out), '\n'), 0
	}
	slices.SortStableFunc(old, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	parts := [][]byte{out}
	for _, certificate := range old[:min(len(old), maxOld)] {
		parts = append(parts, encode(certificate))
	}
	return append(bytes.Join(parts, []byte("\n")), '\n'), left
}

func certificatesIn(encoded []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		block, rest := pem.Decode(encoded)
		if block == nil {
			return out
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, certificate)
		}
		encoded = rest
	}
}

func encode(certificate *x509.Certificate) []byte {
	return bytes.TrimSpace(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}

// trust has every webhook of a configuration trust an authority. It reports whether that changes
// anything, and how long it holds; zero for as long as the authority does.
func trust(configuration client.Object, authority []byte, now time.Time) (changed bool, holds time.Duration) {
	for _, hook := range clientConfigs(configuration) {
		wanted, left := bundle(hook.CABundle, authority, now)
		if !bytes.Equal(hook.CABundle, wanted) {
			hook.CABundle, changed = wanted, true
		}
		if left > 0 && (holds == 0 || left < holds) {
			holds = left
		}
	}
	return changed, holds
}

func clientConfigs(configuration client.Object) []*admissionregistrationv1.WebhookClientConfig {
	var out []*admissionregistrationv1.WebhookClientConfig
	switch c := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			out = append(out, &c.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			out = append(out, &c.Webhooks[i].ClientConfig)
		}
	}
	return out
}
