package main

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ownAgent is the user agent of what serves tests.
const ownAgent = "vcsim"

// calls counts requests by name, without those of tests.
type calls struct {
	mutex sync.Mutex
	made  map[string]int
}

var (
	soapMethod = regexp.MustCompile(`<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)`)
	restID     = regexp.MustCompile(`/(id:|urn:)[^/]*`)

	logins = []string{
		"Login", "Logout", "RetrieveServiceContent", "SessionIsActive",
		"GET /rest/com/vmware/cis/session", "POST /rest/com/vmware/cis/session", "DELETE /rest/com/vmware/cis/session",
	}
	// A client waits for a task by a collector of its own.
	waits = []string{
		"CreatePropertyCollector", "CreateFilter", "WaitForUpdatesEx", "CancelWaitForUpdates", "DestroyPropertyFilter",
		"DestroyPropertyCollector",
	}
)

// around returns a handler that counts requests and passes them on.
func (c *calls) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != ownAgent && !strings.HasPrefix(r.URL.Path, "/test/") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client is gone
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			c.note(r, body)
		}
		next.ServeHTTP(w, r)
	})
}

// note counts a request, with the beginnings that test/calls has.
func (c *calls) note(r *http.Request, body []byte) {
	name := r.Method + " " + restID.ReplaceAllString(r.URL.Path, "/ID")
	if found := soapMethod.FindSubmatch(body); found != nil {
		name = string(found[1])
	}
	switch {
	case slices.Contains(logins, name):
		name = "login: " + name
	case slices.Contains(waits, name):
		name = "poll: " + name
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.made[name]++
}

func (c *calls) serve(w http.ResponseWriter, _ *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	answer(w, c.made, nil)
}
