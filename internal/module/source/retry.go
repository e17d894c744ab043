package source

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/apimachinery/pkg/util/wait"
)

// retry calls try until it succeeds, fails permanently, or has failed too often.
func (o Options) retry(ctx context.Context, try func(context.Context) error) error {
	var last error
	tries := 0
	err := wait.ExponentialBackoffWithContext(ctx, o.Backoff, func(ctx context.Context) (bool, error) {
		tries++
		if last = withoutURL(try(ctx)); last == nil {
			return true, nil
		}
		if !mayPass(last) {
			return false, last
		}
		o.Logger.Info("A request for a provider module failed", "try", tries, "error", last.Error())
		return false, nil
	})
	if err == nil {
		return nil
	}
	if last == nil { // there was no time for an attempt
		last = err
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w; timed out after %s", last, o.Timeout)
	case tries > 1:
		return fmt.Errorf("%w; tried %d times", last, tries)
	default:
		return last
	}
}

// withoutURL removes the URL from an error of net/http: it may contain a secret, or come from a
// redirect. It says of a response that is too large what may be wrong.
func withoutURL(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return errTooLarge
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// mayPass reports whether the same request may succeed if retried.
func mayPass(err error) bool {
	var refused *transport.Error
	if errors.As(err, &refused) {
		return isPassing(refused.StatusCode)
	}
	var status *statusError
	if errors.As(err, &status) {
		return isPassing(status.code)
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

func isPassing(code int) bool {
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
		code == http.StatusRequestTimeout
}
