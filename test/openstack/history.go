package openstack

import (
	"slices"
	"strings"
	"time"
)

const uidKey = "machine-iac.io_machine-uid"

// Made is an object that was created, and may have been deleted.
type Made struct {
	Kind, ID, Name string
	// Machine is the UID of its Machine according to the object.
	Machine string
	Made    time.Time
	// Removed is zero while the object exists. Outside means that no API request removed it.
	Removed time.Time
	Outside bool

	object object
}

// Together reports whether both existed at the same time.
func (m Made) Together(other Made) bool {
	before := func(a, b Made) bool { return !a.Removed.IsZero() && !a.Removed.After(b.Made) }
	return !before(m, other) && !before(other, m)
}

func (c *collection) noteMade(made object) {
	c.history = append(c.history, &Made{Kind: c.many, ID: made.text("id"), Made: time.Now(), object: made})
}

func (c *collection) noteRemoved(id string) {
	for _, one := range c.history {
		if one.ID == id && one.Removed.IsZero() {
			one.Removed = time.Now()
		}
	}
}

func (c *collection) noteOutside(gone object) {
	for _, one := range c.history {
		if one.ID == gone.text("id") {
			one.Outside = true
		}
	}
}

// History returns all servers, ports and trunks ever created, by kind and time.
func (c *Cloud) History() []Made {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	var all []Made
	for _, kind := range []*collection{c.services.servers, c.services.ports, c.services.trunks} {
		for _, one := range kind.history {
			seen := *one
			seen.Name, seen.Machine = one.object.text("name"), c.services.machineOf(one.object)
			all = append(all, seen)
		}
	}
	return all
}

// MachinesIn returns the UIDs of Machines that have servers, ports or trunks in a project.
func (c *Cloud) MachinesIn(project string) []string {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	at := slices.IndexFunc(c.services.logins, func(l *login) bool { return l.Project == project })
	if at < 0 {
		return nil
	}
	var uids []string
	for _, kind := range []*collection{c.services.servers, c.services.ports, c.services.trunks} {
		for _, one := range kind.objects {
			if uid := c.services.machineOf(one); uid != "" && one["tenant_id"] == c.services.logins[at].id {
				uids = append(uids, uid)
			}
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// machineOf returns the UID of an object's Machine: from a server's metadata, a port's description, a trunk's port.
func (s *services) machineOf(made object) string {
	if metadata, ok := made["metadata"].(map[string]any); ok {
		return object(metadata).text(uidKey)
	}
	if words := strings.Fields(made.text("description")); len(words) > 0 {
		return words[len(words)-1]
	}
	for _, port := range s.ports.history {
		if made["port_id"] != nil && port.ID == made["port_id"] {
			return s.machineOf(port.object)
		}
	}
	return ""
}

// Set changes a server's metadata outside of the operator, and reports whether the server exists.
func (c *Cloud) Set(name, key, value string) bool {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	at := slices.IndexFunc(c.services.servers.objects, func(o object) bool { return o["name"] == name })
	if at < 0 {
		return false
	}
	metadata, _ := c.services.servers.objects[at]["metadata"].(map[string]any)
	metadata[key] = value
	return true
}

// Reset removes all servers, ports and trunks, and their history.
func (c *Cloud) Reset() {
	c.services.clear()
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	for _, kind := range []*collection{c.services.servers, c.services.ports, c.services.trunks} {
		made := func(o object) bool {
			return slices.ContainsFunc(kind.history, func(m *Made) bool { return m.ID == o["id"] })
		}
		kind.objects = slices.DeleteFunc(kind.objects, made)
		kind.history = nil
	}
}
