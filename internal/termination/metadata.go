package termination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

const (
	// requestTimeout bounds one request. The service is on the host or next to it.
	requestTimeout = 5 * time.Second
	// maxBody bounds the size of a response: Azure lists the events of all machines of an
	// availability set.
	maxBody = 256 << 10
)

// kind is the type of a metadata service's problem, as distinguished in logs.
type kind string

const (
	unreachable kind = "Unreachable"
	timedOut    kind = "Timeout"
	unexpected  kind = "UnexpectedResponse"
)

// refused is the kind of a response with an unexpected status.
func refused(status int) kind { return kind(fmt.Sprintf("Status%d", status)) }

// problem is an error of a metadata service.
type problem struct {
	kind kind
	err  error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// kindOf returns the kind of an error.
func kindOf(err error) kind {
	if found, ok := errors.AsType[*problem](err); ok {
		return found.kind
	}
	return "Other"
}

// response is a received response.
type response struct {
	status int
	header http.Header
	body   string
}

// metadata sends requests to a metadata service. It never uses a proxy, which would reach another
// instance's service or none, and follows no redirects, since these services send none.
type metadata struct {
	base   *url.URL
	client *http.Client
}

func newMetadata(base *url.URL) *metadata {
	return &metadata{base: base, client: &http.Client{
		Transport: &http.Transport{
			Proxy:           nil,
			DialContext:     (&net.Dialer{Timeout: requestTimeout}).DialContext,
			MaxIdleConns:    1,
			IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       requestTimeout,
	}}
}

// get reads a path, optionally with a query.
func (m *metadata) get(ctx context.Context, path string, header http.Header) (*response, error) {
	return m.send(ctx, http.MethodGet, path, header)
}

// send sends a request without a body. It returns a response with any status.
func (m *metadata) send(ctx context.Context, method, path string, header http.Header) (*response, error) {
	target, err := m.base.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("building the URL of %s: %w", path, err)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("building the request for %s: %w", path, err)
	}
	request.Header = header
	received, err := m.client.Do(request)
	if err != nil {
		return nil, failed(err)
	}
	defer received.Body.Close() //nolint:errcheck // it was read
	content, err := io.ReadAll(io.LimitReader(received.Body, maxBody+1))
	if err != nil {
		return nil, failed(fmt.Errorf("reading the response of %s %s: %w", method, target, err))
	}
	if len(content) > maxBody {
		return nil, &problem{unexpected, fmt.Errorf("%s %s: the response is larger than %d bytes", method, target, maxBody)}
	}
	return &response{status: received.StatusCode, header: received.Header, body: string(content)}, nil
}

// failed converts an error of a request to a problem.
func failed(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); (ok && timeout.Timeout()) || errors.Is(err, os.ErrDeadlineExceeded) {
		return &problem{timedOut, err}
	}
	return &problem{unreachable, err}
}

// refuse returns the error for a response with an unexpected status.
func (m *metadata) refuse(r *response, path string) error {
	return &problem{refused(r.status), fmt.Errorf("GET %s: the metadata service returned status %d",
		m.base.JoinPath(path), r.status)}
}

// misread returns the error for a response that does not match the service's documentation. It
// omits the body, which may be anything.
func (m *metadata) misread(r *response, path, want string) error {
	return &problem{unexpected, fmt.Errorf("GET %s: the metadata service returned %d bytes that are not %s",
		m.base.JoinPath(path), len(r.body), want)}
}
