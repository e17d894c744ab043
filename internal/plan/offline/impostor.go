package offline

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// impostor is a stand-in that the bridge takes for a provider of its mirror: there is an executable that says where the stand-in listens.
type impostor struct {
	// folder makes a new folder.
	folder func() (string, error)
	// file is the provider itself, and environment what it sees.
	file        string
	environment map[string]string

	mu      sync.Mutex
	plugin  *plugin
	standIn *standIn
	closed  bool
	// waiting is the pipe that processes of the executable wait at; they end when it is opened.
	waiting string
}

// newImpostor has an impostor stand for a provider: makes the executable in a mirror.
func newImpostor(ctx context.Context, provider bridged, mirror string, i *impostor) (*impostor, error) {
	running, err := i.provider()
	if err != nil {
		return nil, err
	}
	if err := i.serve(ctx, provider, mirror, running); err != nil {
		return nil, errors.Join(fmt.Errorf("standing in for %s: %w", provider.address, err), i.close())
	}
	return i, nil
}

func (i *impostor) serve(ctx context.Context, provider bridged, mirror string, running *plugin) error {
	protocol := running.process.ProtocolVersion()
	// The bridge asks for the schemas of a provider before it serves anything of it.
	schemas, err := running.connection.schemas(ctx)
	if err != nil {
		return err
	}
	if schemas, err = narrow(schemas, protocol == 5, provider.uses); err != nil {
		return err
	}
	dir, err := i.folder()
	if err != nil {
		return err
	}
	certificate, err := newCertificate()
	if err != nil {
		return err
	}
	secured := grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	if i.standIn, err = newStandIn(dir, schemas, protocol, i.ask, nil, secured); err != nil {
		return err
	}
	waiting := filepath.Join(dir, "waiting")
	if err := syscall.Mkfifo(waiting, 0o600); err != nil {
		return err
	}
	i.waiting = waiting
	place := filepath.Join(mirror, provider.folder())
	if err := os.MkdirAll(place, 0o700); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\necho '1|%d|unix|%s|grpc|%s'\nread -r end <'%s'\n", protocol, i.standIn.address,
		base64.RawStdEncoding.EncodeToString(certificate.Certificate[0]), waiting)
	return os.WriteFile(filepath.Join(place, provider.executable()), []byte(script), 0o700) //nolint:gosec // it is to be run
}

// provider answers the provider itself, started when it is asked for first.
func (i *impostor) provider() (*plugin, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, errors.New("the planner is closed")
	}
	if i.plugin != nil {
		return i.plugin, nil
	}
	dir, err := i.folder()
	if err != nil {
		return nil, fmt.Errorf("starting the provider %s: %w", filepath.Base(i.file), err)
	}
	i.plugin, err = startPlugin(dir, i.file, i.environment)
	return i.plugin, err
}

func (i *impostor) ask(ctx context.Context, method string, request frame) (frame, error) {
	running, err := i.provider()
	if err != nil {
		return nil, err
	}
	return running.connection.ask(ctx, method, request)
}

func (i *impostor) close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	var failed []error
	if i.standIn != nil {
		i.standIn.close()
	}
	if i.waiting != "" {
		if pipe, err := os.OpenFile(i.waiting, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // else nobody waits
			failed = append(failed, pipe.Close())
		}
	}
	if i.plugin != nil {
		failed = append(failed, i.plugin.connection.client.Close(), i.plugin.process.End())
	}
	return errors.Join(failed...)
}

// The certificate is valid whatever a clock says.
var (
	notBefore = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// newCertificate makes what the bridge wants to know a provider by. The socket is in a folder that is private, which is what protects it.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}
