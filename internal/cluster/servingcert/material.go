package servingcert

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
)

// How long what is made is good for. Each is renewed when the named part of its time is left.
const (
	authorityValidity = 5 * 365 * 24 * time.Hour
	authorityAhead    = 180 * 24 * time.Hour
	servingValidity   = 90 * 24 * time.Hour
	servingAhead      = 30 * 24 * time.Hour
	// skew is how far clocks may be apart.
	skew = time.Hour
)

// Keys of the Secret; that of the certificate and its key are Kubernetes' own.
const (
	authorityName    = "ca.crt"
	authorityKeyName = "ca.key"
)

// material is what the Secret holds, as PEM.
type material struct {
	authority, authorityKey []byte
	certificate, key        []byte
}

func materialOf(secret *corev1.Secret) material {
	return material{
		authority: secret.Data[authorityName], authorityKey: secret.Data[authorityKeyName],
		certificate: secret.Data[corev1.TLSCertKey], key: secret.Data[corev1.TLSPrivateKeyKey],
	}
}

// into writes the material into a Secret.
func (m material) into(secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[authorityName], secret.Data[authorityKeyName] = m.authority, m.authorityKey
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = m.certificate, m.key
}

// pair returns what a TLS server takes.
func (m material) pair() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(m.certificate, m.key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	return &pair, nil
}

// maker makes certificates for names, of which there is one at least.
type maker struct {
	names []string
}

const authorityCommonName = "machine-iac-operator webhooks"

func (m maker) rotator() *rotator.CertRotator {
	return &rotator.CertRotator{
		CAName: authorityCommonName, CAOrganization: "machine-iac-operator",
		DNSName: m.names[0], ExtraDNSNames: m.names[1:], ExtKeyUsages: &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// renew returns material that is good for a while: the given one, or with a new certificate, or all
// new.
func (m maker) renew(given material, now time.Time) (_ material, changed bool, err error) {
	if m.good(given, now) {
		return given, false, nil
	}
	authority, err := m.authority(given, now)
	if err != nil {
		return material{}, false, err
	}
	certificate, key, err := m.rotator().CreateCertPEM(authority, now.Add(-skew), now.Add(servingValidity))
	if err != nil {
		return material{}, false, fmt.Errorf("making a certificate: %w", err)
	}
	return material{authority: authority.CertPEM, authorityKey: authority.KeyPEM, certificate: certificate,
		key: key}, true, nil
}

// good reports whether nothing is to be renewed.
func (m maker) good(given material, now time.Time) bool {
	if !goodAuthority(given, now) || startsLater(given.certificate, now) {
		return false
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range m.names {
		if ok, err := rotator.ValidCert(given.authority, given.certificate, given.key, name,
			&usages, now.Add(servingAhead)); err != nil || !ok {
			return false
		}
	}
	return true
}

func goodAuthority(given material, now time.Time) bool {
	ok, err := rotator.ValidCert(given.authority, given.authority, given.authorityKey, authorityCommonName, nil,
		now.Add(authorityAhead))
	return err == nil && ok && !startsLater(given.authority, now)
}

// startsLater reports whether a certificate is not good yet.
func startsLater(encoded []byte, now time.Time) bool {
	certificate, err := parse(encoded)
	return err != nil || now.Before(certificate.NotBefore)
}

// authority returns the given authority while it is good, else a new one.
func (m maker) authority(given material, now time.Time) (*rotator.KeyPairArtifacts, error) {
	if goodAuthority(given, now) {
		if read, err := readAuthority(given); err == nil {
			return read, nil
		}
	}
	made, err := m.rotator().CreateCACert(now.Add(-skew), now.Add(authorityValidity))
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	return made, nil
}

func readAuthority(given material) (*rotator.KeyPairArtifacts, error) {
	certificate, err := parse(given.authority)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(given.authorityKey)
	if block == nil {
		return nil, errors.New("reading the authority's key: it is not PEM")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's key: %w", err)
	}
	return &rotator.KeyPairArtifacts{Cert: certificate, Key: key, CertPEM: given.authority,
		KeyPEM: given.authorityKey}, nil
}

// parse reads the first certificate of some PEM.
func parse(encoded []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(encoded)
	if block == nil {
		return nil, errors.New("reading a certificate: it is not PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	return certificate, nil
}

// renewalIn returns how long good material stays so.
func renewalIn(given material, now time.Time) time.Duration {
	next := now.Add(servingAhead)
	if certificate, err := parse(given.certificate); err == nil {
		next = certificate.NotAfter.Add(-servingAhead)
	}
	if authority, err := parse(given.authority); err == nil && authority.NotAfter.Add(-authorityAhead).Before(next) {
		next = authority.NotAfter.Add(-authorityAhead)
	}
	return max(next.Sub(now), 0)
}
