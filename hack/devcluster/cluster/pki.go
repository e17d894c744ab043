package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"slices"
	"time"
)

const (
	certCA         = "ca"
	certEtcd       = "etcd"
	certEtcdClient = "kube-apiserver-etcd-client"
	certAdmin      = "admin"
	keyTokens      = "service-account"
)

// kwokUser is the user in KWOK's certificate, to which its roles are bound.
const kwokUser = "devcluster:kwok"

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
	// renewBefore is the remaining validity at which a certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
	// backdate tolerates small clock differences.
	backdate = time.Hour
)

type certificate struct {
	name   string
	user   string
	groups []string
	server bool
	client bool
	hosts  []string
	ips    []net.IP
}

// certificates lists all certificates except the authority.
func certificates() []certificate {
	local, localIP := []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1).To4()}
	apiHosts := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	return []certificate{
		// etcd uses one certificate for its clients and, as a peer, for itself.
		{name: certEtcd, user: "etcd", server: true, client: true, hosts: local, ips: localIP},
		{name: certEtcdClient, user: certEtcdClient, client: true},
		{name: string(APIServer), user: "kube-apiserver", server: true, hosts: apiHosts,
			ips: append(localIP, serviceIP)},
		{name: string(ControllerManager), user: "system:kube-controller-manager", server: true, client: true,
			hosts: local, ips: localIP},
		{name: string(Scheduler), user: "system:kube-scheduler", server: true, client: true,
			hosts: local, ips: localIP},
		{name: string(KWOK), user: kwokUser, client: true},
		{name: certAdmin, user: "devcluster:admin", groups: []string{"system:masters"}, client: true},
	}
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// ensurePKI creates what is missing, damaged or about to expire in pki/, and reports whether anything changed.
func ensurePKI(l layout, now time.Time) (changed bool, err error) {
	ca, fresh, err := ensureAuthority(l, now)
	if err != nil {
		return false, fmt.Errorf("making the certificate authority: %w", err)
	}
	changed = fresh
	for _, wanted := range certificates() {
		if usable(l, wanted, ca, now) {
			continue
		}
		if err := issue(l, wanted, ca, now); err != nil {
			return false, fmt.Errorf("making the certificate of %s: %w", wanted.name, err)
		}
		changed = true
	}
	fresh, err = ensureTokenKey(l)
	if err != nil {
		return false, fmt.Errorf("making the key that signs service account tokens: %w", err)
	}
	return changed || fresh, nil
}

func ensureAuthority(l layout, now time.Time) (authority, bool, error) {
	pair, err := tls.LoadX509KeyPair(l.cert(certCA), l.key(certCA))
	if err == nil {
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if ok && pair.Leaf.IsCA && lasts(pair.Leaf, now) {
			return authority{cert: pair.Leaf, key: key}, false, nil
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, false, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "devcluster-ca"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	cert, err := sign(template, template, &key.PublicKey, key)
	if err != nil {
		return authority{}, false, err
	}
	return authority{cert: cert, key: key}, true, writePair(l, certCA, cert, key)
}

// issue creates a key and its certificate, signed by the authority.
func issue(l layout, wanted certificate, ca authority, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert, err := sign(template(wanted, now), ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		return err
	}
	return writePair(l, wanted.name, cert, key)
}

func template(wanted certificate, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: wanted.user, Organization: wanted.groups},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(certificateLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: usages(wanted),
		DNSNames:    wanted.hosts,
		IPAddresses: wanted.ips,
	}
}

func usages(wanted certificate) []x509.ExtKeyUsage {
	var list []x509.ExtKeyUsage
	if wanted.server {
		list = append(list, x509.ExtKeyUsageServerAuth)
	}
	if wanted.client {
		list = append(list, x509.ExtKeyUsageClientAuth)
	}
	return list
}

func sign(template, parent *x509.Certificate, public *ecdsa.PublicKey,
	signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// usable reports whether the files hold the wanted certificate and its key, signed by this authority and not about to
// expire.
func usable(l layout, wanted certificate, ca authority, now time.Time) bool {
	pair, err := tls.LoadX509KeyPair(l.cert(wanted.name), l.key(wanted.name))
	if err != nil {
		return false
	}
	cert := pair.Leaf
	return cert.CheckSignatureFrom(ca.cert) == nil &&
		lasts(cert, now) &&
		cert.Subject.CommonName == wanted.user &&
		slices.Equal(cert.Subject.Organization, wanted.groups) &&
		slices.Equal(cert.ExtKeyUsage, usages(wanted)) &&
		slices.Equal(cert.DNSNames, wanted.hosts) &&
		slices.EqualFunc(cert.IPAddresses, wanted.ips, net.IP.Equal)
}

func lasts(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && now.Add(renewBefore).Before(cert.NotAfter)
}

// ensureTokenKey creates the key that signs service account tokens. A new key invalidates all tokens.
func ensureTokenKey(l layout) (bool, error) {
	path := l.key(keyTokens)
	_, err := os.Stat(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return false, err
	}
	return true, writeKey(path, key)
}

func writePair(l layout, name string, cert *x509.Certificate, key *ecdsa.PrivateKey) error {
	if err := writeKey(l.key(name), key); err != nil {
		return err
	}
	return writeFile(l.cert(name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}
