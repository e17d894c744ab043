package openstack

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// object is an API object.
type object map[string]any

func (o object) text(field string) string {
	text, _ := o[field].(string)
	return text
}

func (o object) texts(field string) []string {
	var texts []string
	for _, one := range list(o[field]) {
		if text, ok := one.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func (o object) objects(field string) []object {
	var objects []object
	for _, one := range list(o[field]) {
		if fields, ok := one.(map[string]any); ok {
			objects = append(objects, fields)
		}
	}
	return objects
}

func list(value any) []any {
	listed, _ := value.([]any)
	return listed
}

// refusal is an error response.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

func badRequest(message string) error { return &refusal{http.StatusBadRequest, message} }
func conflict(message string) error   { return &refusal{http.StatusConflict, message} }
func notFound(what, id string) error {
	return &refusal{http.StatusNotFound, what + " " + id + " could not be found"}
}

// collection contains all objects of a kind.
type collection struct {
	// one and many are the kind's singular and plural in requests and responses.
	one, many string
	objects   []object
	// made completes and validates a new object; removed deletes dependents or returns an error.
	made    func(request *http.Request, made object) error
	removed func(gone object) error
	history []*Made
	// shown returns the visible part of an object; nil shows all of it.
	shown func(object) object
}

func (c *collection) get(id string) object {
	at := slices.IndexFunc(c.objects, func(o object) bool { return o["id"] == id })
	if at < 0 {
		return nil
	}
	return c.objects[at]
}

func (c *collection) add(fields object) object {
	if fields["id"] == nil {
		fields["id"] = string(uuid.NewUUID())
	}
	c.objects = append(c.objects, fields)
	return fields
}

func (c *collection) drop(id string) {
	c.noteRemoved(id)
	c.objects = slices.DeleteFunc(c.objects, func(o object) bool { return o["id"] == id })
}

func (c *collection) show(o object) object {
	if c.shown != nil {
		return c.shown(o)
	}
	return o
}

// serve registers the handlers of a collection at a path.
func (s *services) serve(path string, c *collection) {
	s.handle("GET "+path, func(r *http.Request) (int, any, error) {
		return http.StatusOK, map[string]any{c.many: c.search(r)}, nil
	})
	s.handle("GET "+path+"/{id}", func(r *http.Request) (int, any, error) {
		found := c.seen(r)
		if found == nil {
			return 0, nil, notFound(c.one, r.PathValue("id"))
		}
		if c.one == "" { // an image is not wrapped
			return http.StatusOK, c.show(found), nil
		}
		return http.StatusOK, map[string]any{c.one: c.show(found)}, nil
	})
	if c.made != nil {
		s.handle("POST "+path, c.create)
	}
	s.handle("PUT "+path+"/{id}", func(r *http.Request) (int, any, error) {
		found, change := c.seen(r), map[string]object{}
		if found == nil {
			return 0, nil, notFound(c.one, r.PathValue("id"))
		}
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			return 0, nil, badRequest(err.Error())
		}
		maps.Copy(found, change[c.one])
		return http.StatusOK, map[string]any{c.one: c.show(found)}, nil
	})
	s.handle("DELETE "+path+"/{id}", func(r *http.Request) (int, any, error) {
		found := c.seen(r)
		if found == nil {
			return 0, nil, notFound(c.one, r.PathValue("id"))
		}
		if c.removed != nil {
			if err := c.removed(found); err != nil {
				return 0, nil, err
			}
		}
		c.drop(r.PathValue("id"))
		return http.StatusNoContent, nil, nil
	})
	s.handle("PUT "+path+"/{id}/tags", func(r *http.Request) (int, any, error) {
		found, tags := c.seen(r), object{}
		if found == nil {
			return 0, nil, notFound(c.one, r.PathValue("id"))
		}
		if err := json.NewDecoder(r.Body).Decode(&tags); err != nil {
			return 0, nil, badRequest(err.Error())
		}
		found["tags"] = tags["tags"]
		return http.StatusOK, tags, nil
	})
}

func (c *collection) create(r *http.Request) (int, any, error) {
	fields := object{}
	if err := json.NewDecoder(r.Body).Decode(&fields); err != nil {
		return 0, nil, badRequest(err.Error())
	}
	made, _ := fields[c.one].(map[string]any)
	if made == nil {
		return 0, nil, badRequest("there is no " + c.one)
	}
	// fields beside the object belong to it
	for name, value := range fields {
		if name != c.one {
			made[name] = value
		}
	}
	if err := c.made(r, made); err != nil {
		return 0, nil, err
	}
	status := http.StatusCreated
	if c.one == "server" || c.one == "volume" {
		status = http.StatusAccepted
	}
	if c.one == "server_group" {
		status = http.StatusOK
	}
	c.add(made)
	c.noteMade(made)
	return status, map[string]any{c.one: c.show(made)}, nil
}

// search returns the objects that match the request's query.
func (c *collection) search(r *http.Request) []object {
	found := []object{}
	for _, one := range c.objects {
		fits := maySee(r, one)
		for field, values := range r.URL.Query() {
			fits = fits && matches(one, field, values[0])
		}
		if fits {
			found = append(found, c.show(one))
		}
	}
	return found
}

// matches compares a field with a query parameter, and ignores parameters such as limit.
func matches(one object, field, want string) bool {
	tagged := func(tag string) bool { return slices.Contains(one.texts("tags"), tag) }
	wanted := strings.Split(want, ",")
	missing := func(tag string) bool { return !tagged(tag) }
	switch field {
	case "limit", "marker", "sort", "sort_key", "sort_dir", "is_public", "status", "visibility", "owner",
		"member_status", "tag", "os_hidden", "size_min", "size_max":
		return true
	case "project_id": // some objects have no project
		return one.text(field) == "" || one.text(field) == want
	case "tags":
		return !slices.ContainsFunc(wanted, missing)
	case "tags-any":
		return slices.ContainsFunc(wanted, tagged)
	case "not-tags":
		return slices.ContainsFunc(wanted, missing)
	case "not-tags-any":
		return !slices.ContainsFunc(wanted, tagged)
	}
	return one.text(field) == want
}
