package termination

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// service is a local metadata service, which a test changes while it runs.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	handle   http.HandlerFunc
	requests []string
}

// serve starts a metadata service that responds by a function.
func serve(t *testing.T, handle http.HandlerFunc) *service {
	t.Helper()
	s := &service{handle: handle}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		handle := s.handle
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		s.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// now changes how the service responds, and forgets the requests so far.
func (s *service) now(handle http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle, s.requests = handle, nil
}

func (s *service) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requests, ", ")
}

// says responds with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(gcpHeader, gcpFlavor)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// hangs responds when the client has gone.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// impatient is how long a request may take in tests, which run beside others.
const impatient = 2 * time.Second

// source returns a cloud's source at a URL, with little patience.
func source(t *testing.T, cloud Cloud, o SourceOptions) Source {
	t.Helper()
	made, err := NewSource(cloud, o)
	if err != nil {
		t.Fatal(err)
	}
	switch s := made.(type) {
	case *aws:
		s.service.client.Timeout = impatient
	case *azure:
		s.service.client.Timeout = impatient
	case *gcp:
		s.service.client.Timeout = impatient
	}
	return made
}

// expect looks once, and wants a result, and a kind of problem or none.
func expect(t *testing.T, of Source, want bool, problem kind) {
	t.Helper()
	got, err := of.Terminating(t.Context())
	switch {
	case got != want:
		t.Errorf("terminating is %t (%v), want %t", got, err, want)
	case problem == "" && err != nil:
		t.Errorf("fails with %v", err)
	case problem != "" && (err == nil || kindOf(err) != problem):
		t.Errorf("the error is of the kind %s: %v; want %s", kindOf(err), err, problem)
	}
}

// What goes wrong with any metadata service is an error, and never a termination.
func TestTroubleIsNoTermination(t *testing.T) {
	elsewhere := httptest.NewServer(says(http.StatusOK, "TRUE"))
	t.Cleanup(elsewhere.Close)
	closed := httptest.NewServer(says(http.StatusOK, "TRUE"))
	closed.Close()
	for name, tc := range map[string]struct {
		handle http.HandlerFunc
		want   kind
	}{
		"an internal error":      {says(http.StatusInternalServerError, "TRUE"), "Status500"},
		"too many requests":      {says(http.StatusTooManyRequests, "2030-01-01T00:00:00Z"), "Status429"},
		"gone for maintenance":   {says(http.StatusServiceUnavailable, `{"Events":[{"EventType":"Preempt"}]}`), "Status503"},
		"a redirect":             {http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP, "Status302"},
		"nothing":                {says(http.StatusOK, ""), unexpected},
		"a page":                 {says(http.StatusOK, "<html>TRUE</html>"), unexpected},
		"another document":       {says(http.StatusOK, `{"events":null}`), unexpected},
		"a list":                 {says(http.StatusOK, `[{"EventType":"Preempt"}]`), unexpected},
		"half a document":        {says(http.StatusOK, `{"Events":[{"EventType":"Pre`), unexpected},
		"more than anyone sends": {says(http.StatusOK, strings.Repeat("2030-01-01T00:00:00Z\n", maxBody/20)), unexpected},
		"silence":                {hangs, timedOut},
		"a broken connection":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, unreachable},
		"half a response": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "TRUE")
		}, unreachable},
	} {
		for _, cloud := range []Cloud{AWS, Azure, GCP} {
			t.Run(name+" on "+string(cloud), func(t *testing.T) {
				of := source(t, cloud, SourceOptions{URL: serve(t, tc.handle).URL, NodeName: "node"})
				if tokens, ok := of.(*aws); ok {
					tokens.token, tokens.until = "a-token", time.Now().Add(time.Hour)
				}
				expect(t, of, false, tc.want)
			})
		}
	}
	for _, cloud := range []Cloud{AWS, Azure, GCP} {
		expect(t, source(t, cloud, SourceOptions{URL: closed.URL, NodeName: "node"}), false, unreachable)
	}
}

func TestNoProxyIsUsed(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	of, err := NewSource(GCP, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport, ok := of.(*gcp).service.client.Transport.(*http.Transport)
	if !ok || transport.Proxy != nil { // loopback would be exempt from the environment's proxy, so that a request shows nothing
		t.Error("requests may go through a proxy")
	}
}

func TestALookEndsWithItsContext(t *testing.T) {
	of, err := NewSource(GCP, SourceOptions{URL: serve(t, hangs).URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := of.Terminating(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

func TestNewSource(t *testing.T) {
	for _, url := range []string{"169.254.169.254", "ftp://169.254.169.254", "http://", "http://host/latest", "http://host?x", "http://user:word@host", "http://[::1"} {
		if _, err := NewSource(AWS, SourceOptions{URL: url}); err == nil || !strings.Contains(err.Error(), "--metadata-url") {
			t.Errorf("%q: the error is %v; want one that names the flag", url, err)
		}
	}
	for _, url := range []string{"", "http://[fd00:ec2::254]", "http://metadata.google.internal/", "https://127.0.0.1:8443"} {
		if _, err := NewSource(AWS, SourceOptions{URL: url}); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := NewSource("hetzner", SourceOptions{}); err == nil || !strings.Contains(err.Error(), "--cloud") {
		t.Errorf("the error is %v; want one that names the flag", err)
	}
}

func TestCloudOf(t *testing.T) {
	for id, want := range map[string]Cloud{
		"aws:///eu-west-1a/i-0123456789abcdef0": AWS,
		"gce://project/europe-west1-b/worker-1": GCP,
		"azure:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm": Azure,
	} {
		if got, err := CloudOf(id); got != want || err != nil {
			t.Errorf("%s is of %q (%v), want %s", id, got, err, want)
		}
	}
	for _, id := range []string{"", "vsphere://42", "aws"} {
		if got, err := CloudOf(id); err == nil || !strings.Contains(err.Error(), "--cloud") {
			t.Errorf("%q is of %q (%v), want an error that names the flag", id, got, err)
		}
	}
	var flag Cloud
	if err := flag.Set("gcp"); err != nil || flag != GCP || flag.String() != "gcp" {
		t.Errorf("the flag is %q (%v)", flag, err)
	}
	if err := flag.Set("GCE"); err == nil || flag != GCP {
		t.Errorf("the flag is %q (%v), want an error", flag, err)
	}
}
