package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	project = "b2f4d1d7a3a94f6aa1d3b0c5e7f90812"
	region  = "RegionOne"
)

// services are the cloud's APIs.
type services struct {
	address string
	mux     *http.ServeMux

	mu        sync.Mutex
	logins    []*login
	obstacles []*Obstruction
	// writes are the requests that were not reads.
	writes []string
	// removedPorts counts deleted ports, so that no address is reused.
	removedPorts int

	networks, subnets, groups, ports, trunks, floatingIPs *collection
	flavors, servers, serverGroups, images, volumes       *collection
}

func newServices() *services {
	s := &services{mux: http.NewServeMux()}
	s.addLogin(Login{Cloud: CloudName, Username: Username, Password: Password, Project: "openshift"}, project)
	s.mux.HandleFunc("POST /identity/v3/auth/tokens", s.authenticate)
	s.serveNetwork()
	s.serveCompute()
	s.serveStorage()
	return s
}

// handle serves authenticated requests one at a time.
func (s *services) handle(pattern string, respond func(*http.Request) (int, any, error)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		by := s.loginOf(r.Header.Get("X-Auth-Token"))
		if by == nil {
			write(w, http.StatusUnauthorized,
				fault(http.StatusUnauthorized, "The request you have made requires authentication."))
			return
		}
		if r.Method != http.MethodGet {
			s.writes = append(s.writes, r.Method+" "+r.URL.Path)
		}
		status, content, err := respond(r.WithContext(context.WithValue(r.Context(), loginKey{}, by)))
		if refused, ok := errors.AsType[*refusal](err); ok {
			write(w, refused.status, fault(refused.status, refused.message))
			return
		}
		write(w, status, content)
	})
}

func fault(status int, message string) any {
	return map[string]any{"error": map[string]any{"code": status, "message": message}}
}

func write(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if content != nil {
		_ = json.NewEncoder(w).Encode(content) // the client may be gone
	}
}

// authenticate exchanges a password for a token.
func (s *services) authenticate(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string }
				}
			}
		}
	}
	err := json.NewDecoder(r.Body).Decode(&asked)
	user := asked.Auth.Identity.Password.User
	s.mu.Lock()
	by := s.enter(user.Name, user.Password)
	s.mu.Unlock()
	if err != nil || by == nil {
		write(w, http.StatusUnauthorized,
			fault(http.StatusUnauthorized, "The request you have made requires authentication."))
		return
	}
	catalog := []any{}
	for kind, path := range map[string]string{
		"compute": "/compute/v2.1", "network": "/network", "image": "/image",
		"volumev3": "/volume/v3/" + by.id, "identity": "/identity",
	} {
		catalog = append(catalog, map[string]any{"id": kind, "type": kind, "name": kind, "endpoints": []any{
			map[string]any{"id": kind, "interface": "public", "region": region, "region_id": region,
				"url": s.address + path},
		}})
	}
	w.Header().Set("X-Subject-Token", by.token)
	write(w, http.StatusCreated, map[string]any{"token": map[string]any{
		"methods":    []string{"password"},
		"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"), "catalog": catalog,
		"project": map[string]any{"id": by.id, "name": by.Project,
			"domain": map[string]any{"id": "default", "name": "Default"}},
		"user": map[string]any{"id": "worker", "name": by.Username,
			"domain": map[string]any{"id": "default", "name": "Default"}},
	}})
}
