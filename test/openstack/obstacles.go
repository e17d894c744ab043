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

// Obstacle affects requests. The zero value holds all requests until it is cleared and then executes them, even if the
// client is gone: a cloud executes a request that it has received.
type Obstacle struct {
	// Match selects the requests.
	Match func(*http.Request) bool
	// Delay delays the execution. With Hold, it lasts until the obstacle is cleared.
	Delay time.Duration
	Hold  bool
	// ResponseDelay delays the response after the execution.
	ResponseDelay time.Duration
	// Refuse skips the execution.
	Refuse bool
	// Status replaces the response's status. With Silent, the connection is closed without a response.
	Status int
	Silent bool
	// Times limits how many requests are affected; zero means all.
	Times int
}

// Obstruction is an active obstacle.
type Obstruction struct {
	Obstacle
	services *services
	met      int
	cleared  chan struct{}
}

func (c *Cloud) Obstruct(o Obstacle) *Obstruction {
	put := &Obstruction{Obstacle: o, services: c.services, cleared: make(chan struct{})}
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	c.services.obstacles = append(c.services.obstacles, put)
	return put
}

// Met returns how many requests the obstacle has affected.
func (o *Obstruction) Met() int {
	o.services.mu.Lock()
	defer o.services.mu.Unlock()
	return o.met
}

// Clear removes the obstacle, and returns how many requests it affected.
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

func (s *services) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.obstacles) > 0 {
		s.clearOne(s.obstacles[0])
	}
}

// inTheWay returns the obstacle for a request, or nil.
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

// receive applies the obstacles to a request.
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
		taken := r.Clone(context.WithoutCancel(r.Context())) // the client may be gone
		taken.Body = io.NopCloser(bytes.NewReader(body))
		s.mux.ServeHTTP(response, taken)
	}
	time.Sleep(met.ResponseDelay)
	switch {
	case met.Silent:
		panic(http.ErrAbortHandler)
	case met.Status != 0:
		write(w, met.Status, fault(met.Status,
			"The server has either erred or is incapable of performing the requested operation."))
	default:
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		_, _ = w.Write(response.Body.Bytes()) // the client may be gone
	}
}

// Makes matches requests that create an object of a kind: servers, ports, trunks.
func Makes(kind string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+kind)
	}
}

// Removes matches requests that delete an object of a kind.
func Removes(kind string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/"+kind+"/")
	}
}
