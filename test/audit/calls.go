// Package audit compares what ServiceAccounts may do with what they did, by the audit log of an API server: which permissions nothing uses,
// and which requests were forbidden.
package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Call is a request to the API server.
type Call struct {
	User, Agent string
	Verb        string
	Group       string
	// Resource has its subresource behind a slash.
	Resource  string
	Namespace string
	Name      string
	// Path is that of the request, without its query.
	Path string
	Code int
	// Forbidden is true where the authorizer refused, which admission does not count as.
	Forbidden bool
	At        time.Time
}

// String returns the request as it is called in reports.
func (c Call) String() string {
	what := strings.TrimSuffix(c.Resource+"."+c.Group, ".")
	if c.Resource == "" {
		what = c.Path
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Verb, what, strings.Trim(c.Namespace+"/"+c.Name, "/")))
}

// event is what is read of an event of audit.k8s.io/v1.
type event struct {
	Stage, Verb, RequestURI, UserAgent string

	User                     struct{ Username string }
	ObjectRef                struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
	Annotations              map[string]string
}

// Read calls a function with each request in a log. The last line may be cut off, since the API server may be writing.
func Read(log io.Reader, each func(Call)) error {
	lines := bufio.NewReader(log)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("reading line %d of the audit log: %w", number, err)
		}
		each(e.call())
	}
}

func (e event) call() Call {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	path, _, _ := strings.Cut(e.RequestURI, "?")
	return Call{
		User: e.User.Username, Agent: e.UserAgent, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: resource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Path: path, Code: e.ResponseStatus.Code,
		Forbidden: e.Annotations["authorization.k8s.io/decision"] == "forbid", At: e.RequestReceivedTimestamp,
	}
}

// made reports whether a request has made an object that it would have changed otherwise, for which the API server asks for the verb create as well.
func (c Call) made() bool { return c.Verb == "patch" && c.Code == http.StatusCreated }
