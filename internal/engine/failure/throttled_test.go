package failure

import (
	"strings"
	"testing"
	"time"
)

func TestThrottledReadsThePauseThatProvidersPrint(t *testing.T) {
	for text, want := range map[string]time.Duration{
		// azurerm: code and message of the body after the status
		"performing CreateOrUpdate: unexpected status 429 (429 Too Many Requests) with error: SubscriptionRequestsThrottled: Number of 'write' requests " +
			"for subscription 's' actor 'a' exceeded. Please try again after '6' seconds after additional tokens are available.": 6 * time.Second,
		"unexpected status 429 (429 Too Many Requests) with error: ResourceRequestsThrottled: Number of requests for action 'a' exceeded " +
			"the limit of '8000' for time interval '00:30:00'. Please try again after '5' minutes.": 5 * time.Minute,
		"unexpected status 429 (429 Too Many Requests) with error: OperationNotAllowed: The server rejected the request because too many " +
			"requests have been received for this subscription.": 0,
		// openstack: the whole body for 413, and gophercloud's own words for 429
		`Error creating openstack_compute_instance_v2: Expected HTTP response code [200 202] when accessing [POST https://nova/servers], but got 413 instead
{"overLimit": {"code": 413, "message": "This request was rate-limited.", "retryAfter": "54"}}`: 54 * time.Second,
		"Too many requests have been sent in a given amount of time. Pause requests, wait up to one minute, and try again.": 0,
		// google: message, details as indented JSON, and the reason
		`Error creating instance: googleapi: Error 429: Quota exceeded for quota metric 'Queries' and limit 'Queries per minute'.
Details:
[
  {
    "@type": "type.googleapis.com/google.rpc.RetryInfo",
    "retryDelay": "17.5s"
  }
]
, rateLimitExceeded`: 17500 * time.Millisecond,
		"googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded":                                                                   0,
		"googleapi: Error 403: Too many operations.\nDetails:\n[\n  {\n    \"reason\": \"CONCURRENT_OPERATIONS_QUOTA_EXCEEDED\"\n  }\n]": 0,
		// aws
		"operation error EC2: RunInstances, exceeded maximum number of attempts, 5, https response error StatusCode: 503, RequestID: r, " +
			"api error RequestLimitExceeded: Request limit exceeded.": 0,
		"operation error EC2: DescribeInstances, https response error StatusCode: 503, RequestID: r, api error Unavailable: Try later.\n" +
			"failed to get rate limit token, retry quota exceeded, 0 available, 5 requested": 0,
		// hostile
		"429 Too Many Requests, Retry-After: -5":                                0,
		"429 Too Many Requests, Retry-After: 0":                                 0,
		"429 Too Many Requests, Retry-After: soon":                              0,
		"429 Too Many Requests, Retry-After: 1e9":                               0,
		"429 Too Many Requests, Retry-After: 500ms":                             0,
		"429 Too Many Requests, Retry-After: 31536000":                          maxRetryAfter,
		"429 Too Many Requests, retry after 600000000000000000 min":             maxRetryAfter,
		"429 Too Many Requests, try again in " + strings.Repeat("9", 400) + "s": maxRetryAfter,
		"429 Too Many Requests, Retry-After: 20, and Retry-After: 120":          2 * time.Minute,
	} {
		found := []Diagnostic{{Severity: SeverityError, Summary: "creating", Detail: text}}
		got, ok := (&Error{Class: Classify(found, nil), Diagnostics: found}).Throttled()
		if !ok || got != want {
			t.Errorf("%q asks for %s (throttled: %t), want %s", text, got, ok, want)
		}
	}
	other := &Error{Class: Transient, Diagnostics: []Diagnostic{{Detail: "Service Unavailable, Retry-After: 20"}}}
	if wait, ok := other.Throttled(); ok || wait != 0 {
		t.Errorf("an error of another class asks for %s (throttled: %t)", wait, ok)
	}
}
