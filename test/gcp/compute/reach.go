package compute

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// reach is how Google's names lead to a server here: by a proxy whose tunnels end in it, and by an authority that is
// trusted for them.
type reach struct {
	proxy       *httptest.Server
	server      *http.Server
	certificate string
}

// tunnels is a listener for connections that the proxy was asked for.
type tunnels struct {
	connections chan net.Conn
	closed      chan struct{}
}

// Accept implements net.Listener.
func (t *tunnels) Accept() (net.Conn, error) {
	select {
	case connection := <-t.connections:
		return connection, nil
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (t *tunnels) Close() error {
	close(t.closed)
	return nil
}

// Addr implements net.Listener.
func (t *tunnels) Addr() net.Addr { return &net.TCPAddr{} }

func newReach(dir string, handler http.Handler) (*reach, error) {
	certificate, err := newCertificate()
	if err != nil {
		return nil, err
	}
	r := &reach{certificate: filepath.Join(dir, "gcp.pem")}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if err := os.WriteFile(r.certificate, authority, 0o600); err != nil {
		return nil, err
	}
	listener := &tunnels{connections: make(chan net.Conn), closed: make(chan struct{})}
	r.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = r.server.ServeTLS(listener, "", "") }() // ends with close
	r.proxy = httptest.NewServer(http.HandlerFunc(listener.connect))
	return r, nil
}

// connect leads Google's names here, and no others anywhere.
func (t *tunnels) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || !strings.HasSuffix(r.Host, ".googleapis.com:443") {
		http.Error(w, "only Google's APIs are here", http.StatusForbidden)
		return
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if _, err := io.WriteString(connection, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = connection.Close()
		return
	}
	select {
	case t.connections <- connection:
	case <-t.closed:
		_ = connection.Close()
	}
}

func (r *reach) close() {
	_ = r.server.Close()
	r.proxy.Close()
}

// newCertificate makes one for Google's names that is its own authority.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"*.googleapis.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

// Credentials returns the key of a service account of the project that counts, as Google hands it out.
func (s *Server) Credentials() ([]byte, error) {
	defer s.lock()()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("making the key of a service account: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("writing the key of a service account: %w", err)
	}
	return json.Marshal(map[string]string{
		"type": "service_account", "project_id": Project, "private_key_id": s.key, "client_id": "1", "token_uri": signsIn,
		"client_email": "machines@" + Project + ".iam.gserviceaccount.com",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
	})
}
