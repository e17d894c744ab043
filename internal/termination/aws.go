package termination

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

const (
	awsTime  = "/latest/meta-data/spot/termination-time"
	awsToken = "/latest/api/token"

	awsTokenHeader = "X-aws-ec2-metadata-token"
	awsTTLHeader   = "X-aws-ec2-metadata-token-ttl-seconds"
	// awsTTL is the lifetime of a token, the maximum that EC2 allows.
	awsTTL = 6 * time.Hour
	// awsEarly is how long before its expiry a token is replaced.
	awsEarly = time.Minute
	// awsPlain is how long no token is requested after EC2 issued none, unless a request requires
	// one.
	awsPlain = 5 * time.Minute
)

// aws is EC2's instance metadata service: version 2, which requires a token, or version 1 if no
// tokens are available.
type aws struct {
	service *metadata
	clock   clock.PassiveClock

	token string
	// until is when the token is replaced or, without a token, requested again.
	until time.Time
}

// Terminating implements Source. The item exists, with a time, once EC2 has marked the instance.
func (a *aws) Terminating(ctx context.Context) (bool, error) {
	read, err := a.read(ctx)
	if err == nil && read.status == http.StatusUnauthorized { // the token has expired, or version 1 was disabled
		a.token, a.until = "", time.Time{}
		read, err = a.read(ctx)
	}
	if err != nil {
		return false, err
	}
	switch read.status {
	case http.StatusNotFound:
		return false, nil
	case http.StatusOK:
		if _, err := time.Parse(time.RFC3339, strings.TrimSpace(read.body)); err != nil {
			return false, a.service.misread(read, awsTime, "a time")
		}
		return true, nil
	}
	return false, a.service.refuse(read, awsTime)
}

// read reads the item, with a token if available.
func (a *aws) read(ctx context.Context) (*response, error) {
	if !a.clock.Now().Before(a.until) {
		if err := a.renew(ctx); err != nil {
			return nil, err
		}
	}
	header := http.Header{}
	if a.token != "" {
		header.Set(awsTokenHeader, a.token)
	}
	return a.service.get(ctx, awsTime, header)
}

// renew requests a token. If the request is refused or times out, as it does behind more hops than
// the instance allows, version 1 is used.
func (a *aws) renew(ctx context.Context) error {
	header := http.Header{}
	header.Set(awsTTLHeader, strconv.Itoa(int(awsTTL/time.Second)))
	made, err := a.service.send(ctx, http.MethodPut, awsToken, header)
	if err != nil {
		if ctx.Err() == nil && kindOf(err) == timedOut {
			a.plain()
			return nil
		}
		return err
	}
	switch made.status {
	case http.StatusOK:
		return a.keep(made)
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		a.plain()
		return nil
	}
	return &problem{refused(made.status), fmt.Errorf("PUT %s: the metadata service returned status %d",
		a.service.base.JoinPath(awsToken), made.status)}
}

// plain suspends tokens for a while.
func (a *aws) plain() { a.token, a.until = "", a.clock.Now().Add(awsPlain) }

// keep stores a token for its lifetime.
func (a *aws) keep(made *response) error {
	token := strings.TrimSpace(made.body)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return &problem{unexpected, fmt.Errorf("PUT %s: the metadata service returned %d bytes that are not a token",
			a.service.base.JoinPath(awsToken), len(made.body))}
	}
	valid := awsTTL
	if seconds, err := strconv.Atoi(made.header.Get(awsTTLHeader)); err == nil && seconds > 0 &&
		seconds < int(awsTTL/time.Second) {
		valid = time.Duration(seconds) * time.Second
	}
	a.token, a.until = token, a.clock.Now().Add(valid-min(awsEarly, valid/2))
	return nil
}
