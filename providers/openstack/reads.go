package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/openstack"
)

// brief is how long a response to a read may be repeated. The provider asks for the same several times while it reads a
// resource, and so do data sources of several Machines. Its polls are 3 s apart.
const brief = time.Second

// reads repeats responses to reads while nothing is written. Flavors and images are asked for once, as no run changes
// them.
type reads struct {
	next http.RoundTripper

	mutex sync.Mutex
	known map[string]*answer
}

// answer is a response, once it is done.
type answer struct {
	once     sync.Once
	begun    time.Time
	lasting  bool
	response *http.Response
	body     []byte
	err      error
}

// once has the provider's client ask once.
func once(configure schema.ConfigureContextFunc) schema.ConfigureContextFunc {
	return func(ctx context.Context, d *schema.ResourceData) (any, diag.Diagnostics) {
		meta, found := configure(ctx, d)
		if config, ok := meta.(*openstack.Config); ok && config.OsClient != nil {
			client := &config.OsClient.HTTPClient
			client.Transport = &reads{next: client.Transport, known: map[string]*answer{}}
		}
		return meta, found
	}
}

// RoundTrip implements http.RoundTripper.
func (r *reads) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		r.forget()
		defer r.forget()
		return r.next.RoundTrip(request)
	}
	found := r.answer(request)
	found.once.Do(func() { found.ask(r.next, request) })
	if found.err != nil || found.response.StatusCode != http.StatusOK {
		r.forget(found)
	}
	if found.err != nil {
		return nil, found.err
	}
	repeated := *found.response
	repeated.Header, repeated.Request = found.response.Header.Clone(), request
	repeated.Body = io.NopCloser(bytes.NewReader(found.body))
	return &repeated, nil
}

func (a *answer) ask(next http.RoundTripper, request *http.Request) {
	if a.response, a.err = next.RoundTrip(request); a.err != nil {
		return
	}
	a.body, a.err = io.ReadAll(a.response.Body)
	_ = a.response.Body.Close()
}

// answer returns the answer to a request, which may be under way. The headers have the token and the API's version.
func (r *reads) answer(request *http.Request) *answer {
	key := fmt.Sprint(request.URL, request.Header)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := r.known[key]
	if found == nil || !found.lasting && time.Since(found.begun) > brief {
		path := request.URL.Path
		found = &answer{begun: time.Now(), lasting: strings.Contains(path, "/flavors") || strings.Contains(path, "/images")}
		r.known[key] = found
	}
	return found
}

// forget drops what a write may change, and what has failed.
func (r *reads) forget(failed ...*answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	maps.DeleteFunc(r.known, func(_ string, one *answer) bool {
		return !one.lasting || slices.Contains(failed, one)
	})
}
