package openstack

import (
	"cmp"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Login is who logs in, and what the clouds.yaml calls the cloud for that.
type Login struct {
	Cloud, Username, Password string
	// Project is the name of the project whose servers, ports and trunks are seen. All projects share the rest.
	Project string
}

type login struct {
	Login
	// id is the project's.
	id, token string
}

type loginKey struct{}

// AddProject makes a project with one user.
func (c *Cloud) AddProject(added Login) {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	c.services.addLogin(added, string(uuid.NewUUID()))
}

// Rotate gives a user another password, and ends the sessions that it has.
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

// enter returns whose user and password these are, nil for nobody's.
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

// projectOf returns the project of who asks.
func projectOf(r *http.Request) string {
	by, ok := r.Context().Value(loginKey{}).(*login)
	if !ok {
		panic(fmt.Sprintf("%s %s came in without a login", r.Method, r.URL.Path))
	}
	return by.id
}

// maySee reports whether an object is of the project of who asks, or everybody's.
func maySee(r *http.Request, one object) bool {
	owner := cmp.Or(one.text("project_id"), one.text("tenant_id"))
	return owner == "" || owner == projectOf(r) || one["shared"] == true
}

// seen returns the object that a request names, nil where it is not there or another project's.
func (c *collection) seen(r *http.Request) object {
	found := c.get(r.PathValue("id"))
	if found == nil || !maySee(r, found) {
		return nil
	}
	return found
}
