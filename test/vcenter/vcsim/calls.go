package main

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// ownAgent is the user agent of what serves tests.
const ownAgent = "vcsim"

// calls counts requests by name, without those of tests, and delays some.
type calls struct {
	mutex sync.Mutex
	made  map[string]int
	// slow are the delays of methods, and pending and most how many of each are and were at once.
	slow          map[string]time.Duration
	pending, most map[string]int
}

var (
	soapMethod = regexp.MustCompile(`<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)`)
	readObject = regexp.MustCompile(`<obj type="(\w+)"`)
	restID     = regexp.MustCompile(`/(id:|urn:)[^/]*`)

	logins = []string{
		"Login", "Logout", "RetrieveServiceContent", "SessionIsActive", "RetrieveProperties SessionManager",
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
			defer c.wait(c.note(r, body))()
		}
		next.ServeHTTP(w, r)
	})
}

// wait delays a request, and returns what ends it.
func (c *calls) wait(name string) (end func()) {
	add := func(count int) time.Duration {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.pending[name] += count
		c.most[name] = max(c.most[name], c.pending[name])
		return c.slow[name]
	}
	time.Sleep(add(1))
	return func() { add(-1) }
}

// serveSlow sets the delay of a method, and returns how many requests of it were there at once.
func (c *calls) serveSlow(w http.ResponseWriter, r *http.Request) {
	method := r.URL.Query().Get("method")
	delay, err := time.ParseDuration(r.URL.Query().Get("delay"))
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.slow[method] = delay
	answer(w, c.most[method], err)
}

// note counts a request, and returns its name, with the beginnings that test/calls has.
func (c *calls) note(r *http.Request, body []byte) string {
	name := r.Method + " " + restID.ReplaceAllString(r.URL.Path, "/ID")
	if found := soapMethod.FindSubmatch(body); found != nil {
		name = string(found[1])
		if of := readObject.FindSubmatch(body); name == "RetrieveProperties" && of != nil {
			name += " " + string(of[1])
		}
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
	return name
}

func (c *calls) serve(w http.ResponseWriter, _ *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	answer(w, c.made, nil)
}
