// Package selfsigned serves metrics with a certificate before, or without, one that clients can verify.
package selfsigned

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	certutil "k8s.io/client-go/util/cert"
)

// Getter returns a server's certificate, as in a [tls.Config].
type Getter = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Unless returns a Getter that calls other, and serves a self-signed certificate while other fails.
func Unless(other Getter) Getter {
	own := sync.OnceValues(func() (*tls.Certificate, error) {
		certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
		if err != nil {
			return nil, fmt.Errorf("generating a self-signed certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		return &pair, err
	})
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if pair, err := other(hello); err == nil {
			return pair, nil
		}
		return own()
	}
}

// FromFolder reads tls.crt and tls.key of a folder at each connection, since they may be replaced.
func FromFolder(folder string) Getter {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if folder == "" {
			return nil, errors.New("no folder")
		}
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("reading the certificate: %w", err)
		}
		return &pair, nil
	}
}
