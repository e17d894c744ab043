package openstack

import (
	"cmp"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Login is a user, and the name of the cloud in the clouds.yaml.
type Login struct {
	Cloud, Username, Password string
	// Project is the project whose servers, ports and trunks the user sees. All projects share the rest.
	Project string
}

type login struct {
	Login
	// id is the project's.
	id, token string
}

type loginKey struct{}

// AddProject adds a project with one user.
func (c *Cloud) AddProject(added Login) {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	c.services.addLogin(added, string(uuid.NewUUID()))
}

// Rotate changes a user's password, and ends the user's sessions.
func (c *Cloud) Rotate(username, password string) {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	for _, one := range c.services.logins {
		if one.Username == username {
			one.Password, one.token = password, newToken()
		}
	}
}

func newToken() string { return "gAAAAABk" + string(uuid.NewUUID()) }

func (s *services) addLogin(added Login, id string) {
	s.logins = append(s.logins, &login{Login: added, id: id, token: newToken()})
}

// enter returns the login for a user and password, or nil.
func (s *services) enter(username, password string) *login {
	for _, one := range s.logins {
		if one.Username == username && one.Password == password {
			return one
		}
	}
	return nil
}

func (s *services) loginOf(token string) *login {
	for _, one := range s.logins {
		if one.token == token {
			return one
		}
	}
	return nil
}

// projectOf returns the requester's project.
func projectOf(r *http.Request) string {
	by, ok := r.Context().Value(loginKey{}).(*login)
	if !ok {
		panic(fmt.Sprintf("%s %s came in without a login", r.Method, r.URL.Path))
	}
	return by.id
}

// maySee reports whether an object is shared or belongs to the requester's project.
func maySee(r *http.Request, one object) bool {
	owner := cmp.Or(one.text("project_id"), one.text("tenant_id"))
	return owner == "" || owner == projectOf(r) || one["shared"] == true
}

// seen returns the requested object, or nil if it does not exist or is another project's.
func (c *collection) seen(r *http.Request) object {
	found := c.get(r.PathValue("id"))
	if found == nil || !maySee(r, found) {
		return nil
	}
	return found
}
