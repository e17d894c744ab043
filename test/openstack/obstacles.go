package openstack

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"
)

// Obstacle is what stands in the way of requests. The zero value holds all requests until it is cleared, and carries them out then, although
// those who asked may have gone: a cloud that has taken a request does what it says.
type Obstacle struct {
	// Match chooses the requests.
	Match func(*http.Request) bool
	// Delay is how long a request waits before it is carried out; forever with Hold, until the obstacle is cleared.
	Delay time.Duration
	Hold  bool
	// ResponseDelay is how long the response is delayed after that.
	ResponseDelay time.Duration
	// Refuse says that the request is not carried out.
	Refuse bool
	// Status is returned in place of the cloud's; with Silent the connection is closed without a response.
	Status int
	Silent bool
	// Times is how many requests are met; zero for all.
	Times int
}

// Obstruction is an obstacle that is up.
type Obstruction struct {
	Obstacle
	services *services
	met      int
	cleared  chan struct{}
}

// Obstruct puts an obstacle up.
func (c *Cloud) Obstruct(o Obstacle) *Obstruction {
	put := &Obstruction{Obstacle: o, services: c.services, cleared: make(chan struct{})}
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	c.services.obstacles = append(c.services.obstacles, put)
	return put
}

// Met returns how many requests have met the obstacle.
func (o *Obstruction) Met() int {
	o.services.mu.Lock()
	defer o.services.mu.Unlock()
	return o.met
}

// Clear takes the obstacle away, and returns how many requests have met it.
func (o *Obstruction) Clear() int {
	o.services.mu.Lock()
	defer o.services.mu.Unlock()
	o.services.clearOne(o)
	return o.met
}

func (s *services) clearOne(gone *Obstruction) {
	at := slices.Index(s.obstacles, gone)
	if at < 0 {
		return
	}
	s.obstacles = slices.Delete(s.obstacles, at, at+1)
	close(gone.cleared)
}

// clear takes all obstacles away.
func (s *services) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.obstacles) > 0 {
		s.clearOne(s.obstacles[0])
	}
}

// inTheWay returns the obstacle that a request meets, nil for none.
func (s *services) inTheWay(r *http.Request) *Obstruction {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.obstacles {
		if one.Match(r) && (one.Times == 0 || one.met < one.Times) {
			one.met++
			return one
		}
	}
	return nil
}

// receive lets a request meet what is in its way.
func (s *services) receive(w http.ResponseWriter, r *http.Request) {
	met := s.inTheWay(r)
	if met == nil {
		s.mux.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if met.Hold {
		<-met.cleared
	} else {
		time.Sleep(met.Delay)
	}
	response := httptest.NewRecorder()
	if !met.Refuse {
		taken := r.Clone(context.WithoutCancel(r.Context())) // whoever asked may have gone
		taken.Body = io.NopCloser(bytes.NewReader(body))
		s.mux.ServeHTTP(response, taken)
	}
	time.Sleep(met.ResponseDelay)
	switch {
	case met.Silent:
		panic(http.ErrAbortHandler)
	case met.Status != 0:
		write(w, met.Status, fault(met.Status, "The server has either erred or is incapable of performing the requested operation."))
	default:
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		_, _ = w.Write(response.Body.Bytes()) // whoever asked has gone
	}
}

// Makes matches the requests that make an object of a kind: servers, ports, trunks.
func Makes(kind string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+kind)
	}
}

// Removes matches the requests that delete an object of a kind.
func Removes(kind string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/"+kind+"/")
	}
}
