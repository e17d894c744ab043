package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	dialTimeout = 10 * time.Second
	// responseTimeout is how long a server may take to start its response.
	responseTimeout = 15 * time.Second
	maxRedirects    = 10
)

// defaultTransport trusts the system's CAs, or those in SSL_CERT_FILE and SSL_CERT_DIR.
var defaultTransport http.RoundTripper = &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
	TLSHandshakeTimeout:   dialTimeout,
	ResponseHeaderTimeout: responseTimeout,
	IdleConnTimeout:       responseTimeout,
	ForceAttemptHTTP2:     true,
}

// statusError means that a web server did not return the file.
type statusError struct{ code int }

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("the server responds with %d %s", e.code, http.StatusText(e.code))
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return text + "; archives are fetched without credentials, so use an OCI registry for a private module"
	case http.StatusNotFound, http.StatusGone:
		return text + "; is the URL correct, and does the file still exist?"
	}
	return text
}

// download fetches an archive from a web server without credentials.
func (f *fetcher) download(ctx context.Context, location *url.URL) (content []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: f.Transport, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		switch {
		case request.URL.Scheme != schemeHTTPS:
			return errors.New("the server redirects to a URL without TLS; use the target's URL, or another server")
		case len(via) >= maxRedirects:
			return fmt.Errorf("the server redirects more than %d times", maxRedirects)
		}
		return nil
	}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, &statusError{code: response.StatusCode}
	}
	return io.ReadAll(response.Body)
}

// boundedTransport limits the size of responses.
type boundedTransport struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.inner.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, module.MaxArchiveBytes)
	}
	return response, err
}
