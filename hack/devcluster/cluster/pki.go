package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
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

// backdate tolerates small clock differences.
const backdate = time.Hour

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

// ensurePKI creates pki/ unless it is complete, and reports whether it did. It keeps the key that signs service account
// tokens, since a new one invalidates all tokens.
func ensurePKI(l layout) (created bool, err error) {
	missing := func(file string) bool {
		_, err := os.Stat(file)
		return err != nil
	}
	files := []string{l.cert(certCA), l.key(certCA), l.key(keyTokens)}
	for _, one := range certificates() {
		files = append(files, l.cert(one.name), l.key(one.name))
	}
	if !slices.ContainsFunc(files, missing) {
		return false, nil
	}
	if missing(l.key(keyTokens)) {
		if _, err := newKey(l, keyTokens); err != nil {
			return false, err
		}
	}
	key, err := newKey(l, certCA)
	if err != nil {
		return false, err
	}
	begin := time.Now().Add(-backdate)
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "devcluster-ca", NotBefore: begin}, key)
	if err != nil {
		return false, fmt.Errorf("making the certificate authority: %w", err)
	}
	for _, wanted := range certificates() {
		if err := issue(l, wanted, authority, key); err != nil {
			return false, fmt.Errorf("making the certificate of %s: %w", wanted.name, err)
		}
	}
	return true, writeCert(l, certCA, authority.Raw) // last: without it, pki/ is incomplete
}

// issue creates a key and its certificate, signed by the authority.
func issue(l layout, wanted certificate, authority *x509.Certificate, by crypto.Signer) error {
	key, err := newKey(l, wanted.name)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject:     pkix.Name{CommonName: wanted.user, Organization: wanted.groups},
		NotBefore:   authority.NotBefore,
		NotAfter:    authority.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: usages(wanted),
		DNSNames:    wanted.hosts,
		IPAddresses: wanted.ips,
	}, authority, key.Public(), by)
	if err != nil {
		return err
	}
	return writeCert(l, wanted.name, der)
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

func newKey(l layout, name string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	return key, writeFile(l.key(name), data)
}

func writeCert(l layout, name string, der []byte) error {
	return writeFile(l.cert(name), pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}))
}
