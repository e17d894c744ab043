//go:build e2e

package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// gate stands before the API server, for those whose credentials or kubeconfig name it. It lets everything through until a hold is
// put on it: that stops requests, or the answers to them, until it is lifted.
type gate struct {
	server *httptest.Server

	mu    sync.Mutex
	holds []*hold
}

// moment is when a request is held.
type moment string

const (
	// beforeRequest is before the API server has seen the request.
	beforeRequest moment = "before the request"
	// beforeAnswer is when the API server has carried it out, and who asked does not know.
	beforeAnswer moment = "before the answer"
)

// hold stops requests.
type hold struct {
	at    moment
	match func(*http.Request) bool
	// reached gets the path of each request that is held.
	reached chan string
	lifted  chan struct{}
	// lift lets them go on, those of clients that were killed as well; refuse ends them with an error.
	lift, refuse func()
	refused      atomic.Bool
}

var errRefused = errors.New("the gate has refused the request")

func openGate(server string, authority []byte) (*gate, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("opening the gate: the cluster's authority is no certificate")
	}
	g := &gate{}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		ModifyResponse: func(r *http.Response) error { return g.pass(r.Request, beforeAnswer) },
		ErrorLog:       log.New(io.Discard, "", 0), // clients that were killed
	}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if g.pass(request, beforeRequest) == nil {
			proxy.ServeHTTP(answer, request)
		}
	}))
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.server.StartTLS()
	return g, nil
}

// address is what credentials name as their server.
func (g *gate) address() string { return g.server.URL }

// authority is the certificate that vouches for the gate.
func (g *gate) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
}

// pass waits at the holds for a request, and fails when the one who asked has gone.
func (g *gate) pass(request *http.Request, at moment) error {
	g.mu.Lock()
	holds := slices.Clone(g.holds)
	g.mu.Unlock()
	for _, h := range holds {
		if h.at != at || !h.match(request) {
			continue
		}
		select {
		case h.reached <- request.Method + " " + request.URL.Path:
		default: // nobody counts so many
		}
		select {
		case <-h.lifted:
			if h.refused.Load() {
				return errRefused
			}
		case <-request.Context().Done():
			return context.Cause(request.Context())
		}
	}
	return nil
}

// hold puts a hold on the gate.
func (g *gate) hold(at moment, match func(*http.Request) bool) *hold {
	h := &hold{at: at, match: match, reached: make(chan string, 100), lifted: make(chan struct{})}
	h.lift = sync.OnceFunc(func() {
		g.mu.Lock()
		g.holds = slices.DeleteFunc(g.holds, func(other *hold) bool { return other == h })
		g.mu.Unlock()
		close(h.lifted)
	})
	h.refuse = func() {
		h.refused.Store(true)
		h.lift()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = append(g.holds, h)
	return h
}

// waiting answers the moments of the holds that are on.
func (g *gate) waiting() []moment {
	g.mu.Lock()
	defer g.mu.Unlock()
	var moments []moment
	for _, h := range g.holds {
		moments = append(moments, h.at)
	}
	return moments
}

func (g *gate) close() {
	g.mu.Lock()
	holds := slices.Clone(g.holds)
	g.mu.Unlock()
	for _, h := range holds {
		h.lift()
	}
	g.server.CloseClientConnections()
	g.server.Close()
}

// nodesMade matches the requests that make Nodes.
func nodesMade(request *http.Request) bool {
	return strings.HasPrefix(request.URL.Path, "/api/v1/nodes") && (request.Method == http.MethodPost || request.Method == http.MethodPatch)
}
