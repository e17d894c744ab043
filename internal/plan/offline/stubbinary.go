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

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// binaryOptions configure a stubBinary.
type binaryOptions struct {
	// Folder creates a new folder.
	Folder func() (string, error)
	// File is the real provider, Environment its environment.
	File        string
	Environment map[string]string
	// Sandbox confines the provider; optional.
	Sandbox *sandbox.Sandbox
	// Uses reports whether a type of resources or data sources is used.
	Uses func(kind string) bool
	// Stub is the path of the stub executable.
	Stub string
}

// stubBinary is an executable that Pulumi's bridge takes for a provider. It prints the address of a stub provider.
type stubBinary struct {
	options binaryOptions

	mu     sync.Mutex
	plugin *plugin
	stub   *stubProvider
	closed bool
	// waiting is a pipe that processes of the executable read from; they end when it is opened.
	waiting string
}

// newStubBinary creates a stub binary and starts its stub provider.
func newStubBinary(ctx context.Context, o binaryOptions) (*stubBinary, error) {
	b := &stubBinary{options: o}
	running, err := b.provider()
	if err != nil {
		return nil, err
	}
	if err := b.serve(ctx, running); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, errors.Join(fmt.Errorf("serving a stub of %s: %w", filepath.Base(o.File), err), b.Close())
	}
	return b, nil
}

func (b *stubBinary) serve(ctx context.Context, running *plugin) error {
	protocol := running.Protocol()
	// The bridge asks for the schemas first.
	schemas, err := running.Schemas(ctx)
	if err != nil {
		return err
	}
	if schemas, err = narrow(schemas, protocol == 5, b.options.Uses); err != nil {
		return err
	}
	dir, err := b.options.Folder()
	if err != nil {
		return err
	}
	certificate, err := newCertificate()
	if err != nil {
		return err
	}
	secured := grpc.Creds(
		credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	if b.stub, err = newStub(stubOptions{Dir: dir, Schemas: schemas, Protocol: protocol, Call: b.call},
		secured); err != nil {
		return err
	}
	waiting := filepath.Join(dir, "waiting")
	if err := workdir.MakePipe(waiting); err != nil {
		return err
	}
	b.waiting = waiting
	if err := os.MkdirAll(filepath.Dir(b.options.Stub), 0o700); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\necho '1|%d|unix|%s|grpc|%s'\nread -r end <'%s'\n", protocol, b.stub.address,
		base64.RawStdEncoding.EncodeToString(certificate.Certificate[0]), waiting)
	return os.WriteFile(b.options.Stub, []byte(script), 0o700) //nolint:gosec // executable
}

// provider returns the real provider, which the first call starts.
func (b *stubBinary) provider() (*plugin, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.New("the planner is closed")
	}
	if b.plugin != nil {
		return b.plugin, nil
	}
	dir, err := b.options.Folder()
	if err != nil {
		return nil, fmt.Errorf("starting the provider %s: %w", filepath.Base(b.options.File), err)
	}
	b.plugin, err = startPlugin(dir, b.options.File, b.options.Environment, b.options.Sandbox)
	return b.plugin, err
}

func (b *stubBinary) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	running, err := b.provider()
	if err != nil {
		return nil, err
	}
	return running.Call(ctx, method, request)
}

// Schemas returns the schemas of the provider's resources, by type.
func (b *stubBinary) Schemas() map[string]block { return b.stub.Schemas() }

// Close stops the stub, the real provider and all processes of the executable.
func (b *stubBinary) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	var failed []error
	if b.stub != nil {
		b.stub.Close()
	}
	if b.waiting != "" {
		// otherwise no process waits
		if pipe, err := os.OpenFile(b.waiting, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			failed = append(failed, pipe.Close())
		}
	}
	if b.plugin != nil {
		failed = append(failed, b.plugin.Close())
	}
	return errors.Join(failed...)
}

// The certificate is always valid.
var (
	notBefore = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// newCertificate returns the certificate by which the bridge identifies a provider. A private folder protects the
// socket.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}
