package failure

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// Classify returns the class of an operation that failed with these diagnostics. It ignores
// warnings.
//
// InvalidConfiguration needs proof for every error: either the engine's own validation failed, or
// final reports that the module lists the provider's text. A nil final lists none. If errors
// differ, a class that is retried wins, since configuration errors often follow from another error
// and are final.
func Classify(diagnostics []Diagnostic, final func(text string) bool) Class {
	found := Errors(diagnostics)
	if len(found) == 0 {
		return Unknown
	}
	class := InvalidConfiguration
	for _, diagnostic := range found {
		if one := diagnostic.class(final); precedence(one) < precedence(class) {
			class = one
		}
	}
	return class
}

// precedence returns the rank of a class among several errors; the lowest wins.
func precedence(class Class) int {
	return slices.Index([]Class{StateNotSaved, Killed, Locked, ImportMissing, ProviderNotInstalled, Credentials, Quota,
		Throttled, Transient, Unknown, InvalidConfiguration}, class)
}

func (d Diagnostic) class(final func(text string) bool) Class {
	if d.invalidates() {
		return InvalidConfiguration
	}
	text := d.Text()
	for _, rule := range rules {
		if rule.pattern.MatchString(text) {
			return rule.class
		}
	}
	if final != nil && final(text) {
		return InvalidConfiguration
	}
	return Unknown
}

// accepted matches failures of Azure's operations after the request was accepted. The virtual machine
// remains in a failed state then, for example after AllocationFailed.
var accepted = regexp.MustCompile(`\bpolling after \w+:`)

// LostResponse reports whether the text also has words of a failure after which the response to a
// request may be missing, or after which something remains. Then a refusal in the same text proves
// nothing: it may be a quoted name.
func (d Diagnostic) LostResponse() bool {
	text := d.Text()
	return accepted.MatchString(text) || slices.ContainsFunc(rules, func(one rule) bool {
		return (one.class == Killed || one.class == Transient) && one.pattern.MatchString(text)
	})
}

// Denied reports whether the infrastructure knows the credentials of a failed operation and denies
// them a permission.
func Denied(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	return ok && slices.ContainsFunc(failed.Diagnostics, func(d Diagnostic) bool {
		return denied.pattern.MatchString(d.Text())
	})
}

// denied lists the texts about missing permissions.
var denied = newRule(Credentials,
	"is forbidden", "forbidden: User *", "Request forbidden", "UnauthorizedOperation", "AccessDenied",
	"AccessDeniedException", "is not authorized to perform", "AuthorizationFailed", "LinkedAuthorizationFailed",
	"PERMISSION_DENIED", "required * permission", "insufficientPermissions", "NoPermission",
	"Permission to perform this operation was denied")

// WorkFolderFull reports whether an operation failed because the disk of the manager, or of the
// run's Pod, is full.
func WorkFolderFull(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		workFolderFull.pattern.MatchString(err.Error()) {
		return true
	}
	failed, ok := errors.AsType[*Error](err)
	return ok && slices.ContainsFunc(failed.Diagnostics, func(d Diagnostic) bool {
		return workFolderFull.pattern.MatchString(d.Text())
	})
}

// workFolderFull lists the texts of Go programs that cannot write to their own disk. Other texts
// about a full device are the infrastructure's.
var workFolderFull = newRule(Transient, fullDiskTexts()...)

func fullDiskTexts() []string {
	var texts []string
	for _, call := range []string{"write *", "write * copy_file_range:", "open *", "mkdir *", "symlink * *", "link * *",
		"rename * *", "sync *", "close *"} {
		texts = append(texts, call+" no space left on device", call+" disk quota exceeded")
	}
	return texts
}

// A rule lists the texts by which engines and providers report one class. Matching ignores case. A
// space matches any white space, a lone star matches a word, and a star inside a word matches any
// letters. Texts match whole words only.
type rule struct {
	class   Class
	pattern *regexp.Regexp
}

func newRule(class Class, texts ...string) rule {
	patterns := make([]string, 0, len(texts))
	for _, text := range texts {
		words := strings.Fields(text)
		for i, word := range words {
			if word == "*" {
				words[i] = `\S+`
			} else {
				words[i] = strings.ReplaceAll(regexp.QuoteMeta(word), `\*`, `\w*`)
			}
		}
		patterns = append(patterns, `\b`+strings.Join(words, `\s+`)+`\b`)
	}
	return rule{class: class, pattern: regexp.MustCompile(`(?i)(?:` + strings.Join(patterns, "|") + `)`)}
}

// rules are tried in order: the engine's own errors first, then narrow texts before broad ones.
var rules = []rule{
	newRule(ProviderNotInstalled, "Failed to query available provider packages"),
	newRule(StateNotSaved,
		"Failed to save state", "Failed to persist state"),
	newRule(Locked,
		"Error acquiring the state lock", "Error locking state", "state is already locked",
		"HTTP remote state already locked"),
	newRule(ImportMissing,
		"Cannot import non-existent remote object", "Import returned null resource", "Resource Import Not Found",
		"Import returned no resources", "The provider returned no imported resources"),
	// Errors of processes. They must not be mistaken for errors of the infrastructure.
	newRule(Killed, "ApplyResourceChange call", "ApplyResourceChange: rpc error",
		"ApplyResourceChange request was cancelled"),
	newRule(Transient,
		"Unrecognized remote plugin message", "plugin exited before we could connect",
		"timeout while waiting for plugin to start",
		"Plugin did not respond", "failed to instantiate provider", "failed to read schema for",
		"Failed provider schema lookup",
		"Failed to load plugin schemas", "Could not load plugin", "Plugin error", "Request cancelled", "plugin crashed",
		"error parsing core protocol version", "error parsing server cert", "incompatible API version with plugin",
		"incompatible core API version with plugin", "unknown address type", "reattachment process not found",
		"checksums did not match",
		"failed to load plugin *", "could not read plugin *", "exited prematurely", "fork/exec *",
		"error reading from server"),
	workFolderFull,
	// Cinder reports quotas and throttling alike as overLimit.
	newRule(Quota, "allowed * exceeded for quota", "exceeds allowed * quota"),
	newRule(Throttled,
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "*Throttled*", "TooManyRequests", "Too Many Requests",
		"TooManyRequestsException", "SlowDown", "rateLimitExceeded", "userRateLimitExceeded",
		"RATE_LIMIT_EXCEEDED", "rate limit exceeded", "rate exceeded", "rate limited",
		"Quota exceeded for quota metric", "Quota exceeded for quota group",
		"status code 429", "StatusCode: 429", "StatusCode=429", "status 429", "HTTP 429", "Error 429",
		"429 Too Many Requests",
		"code: 429", "response code 429", "ResourceExhausted desc = request", "RESOURCE_OPERATION_RATE_EXCEEDED",
		"overLimit", "rate-limited", "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", "failed to get rate limit token"),
	// Retries that are used up are no quota: a response may be lost.
	newRule(Transient, "maximum number of retries reached", "maximum number of attempts reached"),
	newRule(Quota,
		"*LimitExceeded", "*LimitExceededException", "*LimitReached", "InsufficientInstanceCapacity",
		"InsufficientHostCapacity",
		"InsufficientReservedInstanceCapacity", "InsufficientCapacity*", "InsufficientFreeAddressesInSubnet",
		"InsufficientAddressCapacity",
		"InsufficientVolumeCapacity", "MaxSpotInstanceCountExceeded", "SpotMaxPriceTooLow", "ReservationCapacityExceeded",
		"*QuotaExceeded", "QUOTA_EXCEEDED", "quotaExceeded", "Quota * exceeded", "Quota exceeded", "exceeded quota",
		"exceeding quota",
		"exceeding approved", "exceeds quota", "*ExceedsAvailableQuota", "OverQuota", "over quota", "Quota limit",
		"AllocationFailed", "ZonalAllocationFailed", "OverconstrainedAllocationRequest",
		"OverconstrainedZonalAllocationRequest",
		"SkuNotAvailable", "*RESOURCE_POOL_EXHAUSTED*",
		"*STOCKOUT", "does not have enough resources available to fulfill the request",
		"is currently unavailable in the * zone", "IP_SPACE_EXHAUSTED", "SubnetIsFull",
		"No valid host was found", "NoValidHost", "Exhausted all hosts available", "Out of capacity", "Out of host capacity",
		"insufficient resources", "insufficient compute resources", "insufficient capacity", "OutOfStock",
		"no space left on device", "not enough free space", "Insufficient disk space", "Insufficient*ResourcesFault",
		"insufficient storage", "does not have sufficient memory", "No suitable hosts", "maximum number of * reached",
		"Maximum number of ports exceeded", "Maximum number of fixed IPs exceeded",
		"No compatible host", "No more IP addresses available", "cannot_start_capacity", "resource_limit_exceeded",
		"resource_unavailable",
		"exceed your * limit"),
	newRule(Credentials,
		"the server has asked for the client to provide credentials", "Unauthorized", "UnauthorizedOperation",
		"UnauthorizedAccess", "AccessDenied", "AccessDeniedException", "Access Denied",
		"AuthFailure", "AuthorizationFailed", "AuthenticationFailed", "InvalidAuthenticationToken*",
		"ExpiredAuthenticationToken",
		"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException",
		"SignatureDoesNotMatch", "InvalidAccessKeyId", "OptInRequired", "NoCredentialProviders",
		"No valid credential sources found",
		"failed to refresh cached credentials", "no EC2 IMDS role found", "static credentials are empty",
		"invalid_grant", "invalid_client",
		"AADSTS*", "LinkedAuthorizationFailed", "could not find default credentials", "could not configure *AuthConfig",
		"unable to build authorizer*",
		"Error building ARM Config", "unable to list provider registration status", "oauth2: cannot fetch token",
		"PERMISSION_DENIED",
		"Permission denied", "required * permission", "insufficientPermissions", "insufficient authentication scopes",
		"forbidden",
		"Authentication failed", "Authentication required", "login failed", "Cannot complete login",
		"incorrect user name or password",
		"InvalidLogin", "NoPermission", "Permission to perform this operation was denied", "not authorized",
		"not authenticated",
		"invalid credentials", "You must provide a password*", "bad credentials", "status code 401", "StatusCode: 401",
		"StatusCode=401",
		"status code 403", "StatusCode: 403", "StatusCode=403", "Error 401", "Error 403", "HTTP 401", "HTTP 403", "code: 401",
		"code: 403",
		"x509: certificate signed by unknown authority", "certificate has expired or is not yet valid"),
	newRule(Transient,
		"connection refused", "connection reset", "broken pipe", "no route to host", "network is unreachable",
		"no such host", "server misbehaving", "Temporary failure in name resolution", "i/o timeout", "TLS handshake",
		"context deadline exceeded", "deadline exceeded", "timeout while waiting", "timed out", "request timeout",
		"RequestTimeout",
		"timeout awaiting response headers", "Client.Timeout exceeded", "unexpected EOF",
		"EOF", "http2: client connection lost",
		"use of closed network connection", "Bad Gateway", "Service Unavailable", "ServiceUnavailable", "Gateway Timeout",
		"Gateway Time-out",
		"Internal Server Error", "InternalServerError", "InternalError", "InternalFailure", "backendError", "ServerTimeout",
		"AnotherOperationInProgress", "OperationPreempted", "RESOURCE_NOT_READY", "resourceNotReady",
		"ConcurrentModification",
		"status code 500", "status code 502", "status code 503", "status code 504", "StatusCode: 500", "StatusCode: 502",
		"StatusCode: 503",
		"StatusCode: 504", "StatusCode=500", "StatusCode=502", "StatusCode=503", "StatusCode=504", "Error 500", "Error 502",
		"Error 503",
		"Error 504", "HTTP 500", "HTTP 502", "HTTP 503", "HTTP 504", "HTTP remote state endpoint",
		"rpc error: code = Unavailable", "transport is closing",
		"the server is currently unable to handle the request", "etcdserver: *", "object has been modified", "TaskInProgress",
		"panic: *", "fatal error: *", "runtime error: *", "SIGSEGV", "signal: killed", "resource temporarily unavailable",
		"cannot allocate memory", "too many open files", "text file busy", "connection error: desc",
		"Error releasing the state lock", "Saved plan is stale", "Failed to get existing workspaces",
		"Error refreshing state", "Failed to load state"),
}
