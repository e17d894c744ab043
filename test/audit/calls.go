// Package audit compares the rights of ServiceAccounts with their requests in an API server's audit log: it finds
// unused permissions and forbidden requests.
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

type Call struct {
	User, Agent string
	Verb        string
	Group       string
	// Resource includes the subresource, after a slash.
	Resource  string
	Namespace string
	Name      string
	// Path excludes the query.
	Path string
	Code int
	// Forbidden means rejected by the authorizer, not by admission.
	Forbidden bool
	At        time.Time
}

func (c Call) String() string {
	what := strings.TrimSuffix(c.Resource+"."+c.Group, ".")
	if c.Resource == "" {
		what = c.Path
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Verb, what, strings.Trim(c.Namespace+"/"+c.Name, "/")))
}

// event is the part of an audit.k8s.io/v1 event that Read needs.
type event struct {
	Stage, Verb, RequestURI, UserAgent string

	User                     struct{ Username string }
	ObjectRef                struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
	Annotations              map[string]string
}

// Read calls a function with each request in a log. The API server may be writing, so the last line may be incomplete.
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

// made reports whether a patch created its object, for which the API server also requires the verb create.
func (c Call) made() bool { return c.Verb == "patch" && c.Code == http.StatusCreated }
