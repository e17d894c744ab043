// Package gate stands before an API server, for those whose credentials or kubeconfig name it. It lets everything through until a hold or a
// fault is put on it.
package gate

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

// Gate is a reverse proxy before an API server.
type Gate struct {
	server *httptest.Server

	mu     sync.Mutex
	holds  []*Hold
	faults []*Injection
	audits []func(request *http.Request, status int)
}

// Moment is when a request is held.
type Moment string

const (
	// BeforeRequest is before the API server has seen the request.
	BeforeRequest Moment = "before the request"
	// BeforeAnswer is when the API server has carried it out, and who asked does not know.
	BeforeAnswer Moment = "before the answer"
)

// Hold stops requests.
type Hold struct {
	At Moment
	// Reached gets the path of each request that is held.
	Reached chan string
	// Lift lets them go on, those of clients that were killed as well; Refuse ends them with an error.
	Lift, Refuse func()

	match   func(*http.Request) bool
	lifted  chan struct{}
	refused atomic.Bool
}

var errRefused = errors.New("the gate has refused the request")

// Open opens a gate before the API server at a URL, whose certificate an authority vouches for.
func Open(server string, authority []byte) (*Gate, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("opening the gate: the cluster's authority is no certificate")
	}
	g := &Gate{}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		ModifyResponse: g.answered,
		ErrorHandler:   fail,
		ErrorLog:       log.New(io.Discard, "", 0), // clients that were killed
	}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		request = keepBody(request)
		if err := g.pass(request, BeforeRequest); err != nil {
			fail(answer, request, err)
			return
		}
		proxy.ServeHTTP(answer, request)
	}))
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.server.StartTLS()
	return g, nil
}

// Audit has a function called with each request that was carried out and its status, before who asked knows.
func (g *Gate) Audit(audit func(request *http.Request, status int)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.audits = append(g.audits, audit)
}

func (g *Gate) answered(r *http.Response) error {
	g.mu.Lock()
	audits := slices.Clone(g.audits)
	g.mu.Unlock()
	for _, audit := range audits {
		audit(r.Request, r.StatusCode)
	}
	return g.pass(r.Request, BeforeAnswer)
}

// Address is what credentials name as their server.
func (g *Gate) Address() string { return g.server.URL }

// Authority is the certificate that vouches for the gate.
func (g *Gate) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
}

// pass waits at the holds for a request, and fails when the one who asked has gone, or when a fault is on.
func (g *Gate) pass(request *http.Request, at Moment) error {
	if err := g.meet(request, at); err != nil {
		return err
	}
	g.mu.Lock()
	holds := slices.Clone(g.holds)
	g.mu.Unlock()
	for _, h := range holds {
		if h.At != at || !h.match(request) {
			continue
		}
		select {
		case h.Reached <- request.Method + " " + request.URL.Path:
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

// Hold puts a hold on the gate.
func (g *Gate) Hold(at Moment, match func(*http.Request) bool) *Hold {
	h := &Hold{At: at, match: match, Reached: make(chan string, 100), lifted: make(chan struct{})}
	h.Lift = sync.OnceFunc(func() {
		g.mu.Lock()
		g.holds = slices.DeleteFunc(g.holds, func(other *Hold) bool { return other == h })
		g.mu.Unlock()
		close(h.lifted)
	})
	h.Refuse = func() {
		h.refused.Store(true)
		h.Lift()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = append(g.holds, h)
	return h
}

// Waiting returns the moments of the holds that are on.
func (g *Gate) Waiting() []Moment {
	g.mu.Lock()
	defer g.mu.Unlock()
	var moments []Moment
	for _, h := range g.holds {
		moments = append(moments, h.At)
	}
	return moments
}

// Close lifts every hold and closes the gate.
func (g *Gate) Close() {
	g.mu.Lock()
	holds := slices.Clone(g.holds)
	g.mu.Unlock()
	for _, h := range holds {
		h.Lift()
	}
	g.server.CloseClientConnections()
	g.server.Close()
}

// NodesMade matches the requests that make Nodes.
func NodesMade(request *http.Request) bool {
	return strings.HasPrefix(request.URL.Path, "/api/v1/nodes") && (request.Method == http.MethodPost || request.Method == http.MethodPatch)
}
