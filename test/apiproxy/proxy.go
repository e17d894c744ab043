// Package apiproxy is a reverse proxy for an API server. It forwards everything until a test adds a hold or a fault.
package apiproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Proxy struct {
	server *httptest.Server

	mu     sync.Mutex
	holds  []*Hold
	faults []*Injection
	audits []func(request *http.Request, status int)
}

// Moment is when a request is held.
type Moment string

const (
	// BeforeRequest is before the API server sees the request.
	BeforeRequest Moment = "before the request"
	// BeforeResponse is after the API server executed the request, but before the client knows.
	BeforeResponse Moment = "before the response"
)

type Hold struct {
	At Moment
	// Reached receives the path of each held request.
	Reached chan string
	// Lift releases them, including those of killed clients; Refuse fails them.
	Lift, Refuse func()

	match   func(*http.Request) bool
	lifted  chan struct{}
	refused atomic.Bool
}

var errRefused = errors.New("the proxy has refused the request")

// Open opens a proxy for the API server at a URL, whose certificate authority signed.
func Open(server string, authority []byte) (*Proxy, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("opening the proxy: the cluster's authority is no certificate")
	}
	p := &Proxy{}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		ModifyResponse: p.modifyResponse,
		ErrorHandler:   fail,
		ErrorLog:       log.New(io.Discard, "", 0), // killed clients
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		request = keepBody(request)
		if err := p.pass(request, BeforeRequest); err != nil {
			fail(response, request, err)
			return
		}
		proxy.ServeHTTP(response, request)
	}))
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	return p, nil
}

// Audit sets a function that is called with each executed request and its status, before the client gets the response.
func (p *Proxy) Audit(audit func(request *http.Request, status int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.audits = append(p.audits, audit)
}

func (p *Proxy) modifyResponse(r *http.Response) error {
	p.mu.Lock()
	audits := slices.Clone(p.audits)
	p.mu.Unlock()
	for _, audit := range audits {
		audit(r.Request, r.StatusCode)
	}
	return p.pass(r.Request, BeforeResponse)
}

// Address is the server URL for credentials.
func (p *Proxy) Address() string { return p.server.URL }

// Authority is the proxy's certificate authority.
func (p *Proxy) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// pass waits while a request is held, and fails if the client is gone or a fault is active.
func (p *Proxy) pass(request *http.Request, at Moment) error {
	if err := p.meet(request, at); err != nil {
		return err
	}
	p.mu.Lock()
	holds := slices.Clone(p.holds)
	p.mu.Unlock()
	for _, h := range holds {
		if h.At != at || !h.match(request) {
			continue
		}
		select {
		case h.Reached <- request.Method + " " + request.URL.Path:
		default: // only the first ones are counted
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

func (p *Proxy) Hold(at Moment, match func(*http.Request) bool) *Hold {
	h := &Hold{At: at, match: match, Reached: make(chan string, 100), lifted: make(chan struct{})}
	h.Lift = sync.OnceFunc(func() {
		p.mu.Lock()
		p.holds = slices.DeleteFunc(p.holds, func(other *Hold) bool { return other == h })
		p.mu.Unlock()
		close(h.lifted)
	})
	h.Refuse = func() {
		h.refused.Store(true)
		h.Lift()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, h)
	return h
}

// Waiting returns the moments of the active holds.
func (p *Proxy) Waiting() []Moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	var moments []Moment
	for _, h := range p.holds {
		moments = append(moments, h.At)
	}
	return moments
}

// Close lifts all holds and closes the proxy.
func (p *Proxy) Close() {
	p.mu.Lock()
	holds := slices.Clone(p.holds)
	p.mu.Unlock()
	for _, h := range holds {
		h.Lift()
	}
	p.server.CloseClientConnections()
	p.server.Close()
}

// NodesMade matches requests that create Nodes.
func NodesMade(request *http.Request) bool {
	return strings.HasPrefix(request.URL.Path, "/api/v1/nodes") &&
		(request.Method == http.MethodPost || request.Method == http.MethodPatch)
}

// NodeMade returns the name of the Node that a request creates, or "".
func NodeMade(request *http.Request) string {
	if !NodesMade(request) {
		return ""
	}
	if request.Method == http.MethodPatch {
		return path.Base(request.URL.Path)
	}
	var node metav1.PartialObjectMetadata
	body, _ := request.Context().Value(bodyKey{}).([]byte)
	_ = json.Unmarshal(body, &node) // the API server refuses what is no Node
	return node.Name
}
