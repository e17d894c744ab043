package compute

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// operation is a write that was accepted and ends later.
type operation struct {
	name, kind, target string
	due                time.Time
	ended              bool
	end                func()
}

// begin accepts a write, and says by which operation it is known how far it is.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, target, kind string, end func()) {
	name := "operation-" + strconv.Itoa(len(s.operations))
	one := &operation{name: name, kind: kind, target: target, due: time.Now().Add(s.latency), end: end}
	s.operations = append(s.operations, one)
	if s.latency == 0 {
		one.ended = true
		one.end()
	}
	respond(w, http.StatusOK, one.shown(r))
}

func (o *operation) shown(r *http.Request) object {
	zone := "projects/" + r.PathValue("project") + "/zones/" + r.PathValue("zone")
	shown := object{
		"kind": "compute#operation", "id": strings.TrimPrefix(o.name, "operation-"), "name": o.name,
		"operationType": o.kind, "zone": base + zone,
		"selfLink": base + zone + "/operations/" + o.name, "targetLink": base + o.target, "status": "RUNNING", "progress": 0,
	}
	if o.ended {
		shown["status"], shown["progress"] = "DONE", 100
	}
	return shown
}

// operation says how far a write is. It answers at once, also who would wait.
func (s *Server) operation(w http.ResponseWriter, r *http.Request) {
	for _, one := range s.operations {
		if one.name == r.PathValue("name") {
			respond(w, http.StatusOK, one.shown(r))
			return
		}
	}
	notFound(w, pathOf(r))
}

// keep keeps a resource with what each has.
func (s *Server) keep(name string, one object) {
	s.count++
	one["id"], one["selfLink"] = strconv.Itoa(1000000+s.count), base+name
	one["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	one["zone"] = base + path.Dir(path.Dir(name))
	if kind, ok := one["type"].(string); ok {
		one["type"] = linkOf(kind)
	}
	if size, there := one["sizeGb"]; there {
		one["sizeGb"] = fmt.Sprint(size)
	}
	s.fingerprint(one)
	s.resources[name] = one
}

// linkOf is the link of what a request names by its path or by an address.
func linkOf(named string) string {
	_, from, found := strings.Cut(named, "projects/")
	if !found {
		return named
	}
	return base + "projects/" + from
}

// fingerprint gives what is read before it is written a mark of what it is now.
func (s *Server) fingerprint(one object) {
	s.count++
	mark := fmt.Sprintf("f%d=", s.count)
	one["labelFingerprint"], one["fingerprint"] = mark, mark
	for _, name := range []string{"metadata", "tags"} {
		inner, ok := one[name].(object)
		if !ok {
			inner = object{}
			one[name] = inner
		}
		inner["fingerprint"] = mark
	}
}

// completeInstance adds what an instance gets: its disks and addresses. It returns the path of what it is to be made of
// and is not there.
func (s *Server) completeInstance(name string, one object) (missing string) {
	zone := path.Dir(path.Dir(name))
	one["machineType"] = linkOf(fmt.Sprint(one["machineType"]))
	one["cpuPlatform"] = "Intel Cascade Lake"
	if one["scheduling"] == nil {
		one["scheduling"] = object{"automaticRestart": true, "onHostMaintenance": "MIGRATE", "provisioningModel": "STANDARD"}
	}
	disks, _ := one["disks"].([]any)
	for at, each := range disks {
		disk := each.(object)
		asked, made := disk["initializeParams"].(object)
		if made {
			delete(disk, "initializeParams")
			image, _, _ := strings.Cut(strings.TrimPrefix(linkOf(fmt.Sprint(asked["sourceImage"])), base), "?")
			if s.gone[image] {
				return image
			}
			disk["source"] = s.bootDisk(zone, path.Base(name), asked)
		}
		source := strings.TrimPrefix(linkOf(fmt.Sprint(disk["source"])), base)
		if s.resources[source] == nil {
			return source
		}
		s.resources[source]["users"] = []any{base + name}
		disk["source"], disk["index"], disk["type"], disk["kind"] = base+source, at, "PERSISTENT", "compute#attachedDisk"
		disk["diskSizeGb"] = s.resources[source]["sizeGb"]
		defaults := map[string]any{"mode": "READ_WRITE", "interface": "SCSI", "deviceName": fmt.Sprintf("persistent-disk-%d", at)}
		for field, value := range defaults {
			if disk[field] == nil || disk[field] == "" {
				disk[field] = value
			}
		}
	}
	interfaces, _ := one["networkInterfaces"].([]any)
	for at, each := range interfaces {
		s.completeInterface(at, each.(object))
	}
	return ""
}

func (s *Server) bootDisk(zone, instance string, asked object) (link string) {
	disk := object{
		"name": instance, "sizeGb": "16", "labels": asked["labels"], "type": asked["diskType"], "status": "READY",
		"sourceImage": linkOf(fmt.Sprint(asked["sourceImage"])),
	}
	for field, from := range map[string]string{"name": "diskName", "sizeGb": "diskSizeGb"} {
		if value := asked[from]; value != nil && value != "" {
			disk[field] = value
		}
	}
	if disk["type"] == nil {
		disk["type"] = zone + "/diskTypes/pd-standard"
	}
	name := zone + "/disks/" + fmt.Sprint(disk["name"])
	s.keep(name, disk)
	return base + name
}

func (s *Server) completeInterface(at int, one object) {
	one["name"], one["networkIP"] = fmt.Sprintf("nic%d", at), fmt.Sprintf("10.0.%d.%d", s.count/250, 2+s.count%250)
	one["stackType"], one["fingerprint"] = "IPV4_ONLY", "n="
	for _, field := range []string{"network", "subnetwork"} {
		if one[field] != nil {
			one[field] = linkOf(fmt.Sprint(one[field]))
		}
	}
	configurations, _ := one["accessConfigs"].([]any)
	for _, each := range configurations {
		address := fmt.Sprintf("203.0.113.%d", 2+s.count%250)
		maps.Copy(each.(object), object{"name": "external-nat", "natIP": address, "networkTier": "PREMIUM"})
	}
}

// drop removes a resource, and the disks that go with an instance.
func (s *Server) drop(name string) {
	one := s.resources[name]
	delete(s.resources, name)
	disks, _ := one["disks"].([]any)
	for _, each := range disks {
		disk := each.(object)
		source := strings.TrimPrefix(fmt.Sprint(disk["source"]), base)
		if found := s.resources[source]; found != nil {
			delete(found, "users")
		}
		if disk["autoDelete"] == true {
			delete(s.resources, source)
		}
	}
	for group, members := range s.members {
		s.members[group] = slices.DeleteFunc(members, func(link string) bool { return link == base+name })
	}
}

// Path is that of a resource of the zone, such as instances/worker-1.
func Path(name string) string { return "projects/" + Project + "/zones/" + Zone + "/" + name }

// Names returns the kinds and names of what is there.
func (s *Server) Names() []string {
	defer s.lock()()
	var all []string
	for name := range s.resources {
		all = append(all, path.Base(path.Dir(name))+"/"+path.Base(name))
	}
	slices.Sort(all)
	return all
}

// Instance returns an instance; nil where there is none.
func (s *Server) Instance(name string) map[string]any {
	defer s.lock()()
	return maps.Clone(s.resources[Path("instances/"+name)])
}

// Members returns the names of the instances in a group.
func (s *Server) Members(group string) []string {
	defer s.lock()()
	var names []string
	for _, link := range s.members[Path("instanceGroups/"+group)] {
		names = append(names, path.Base(link))
	}
	return names
}

// Writes returns the requests so far that changed something, in their order.
func (s *Server) Writes() []string {
	defer s.lock()()
	return slices.Clone(s.writes)
}

// Remove takes a resource away, as others do, by its path from projects/ on. An image, which others have made, is not
// there from now on.
func (s *Server) Remove(name string) {
	defer s.lock()()
	s.drop(name)
	s.gone[name] = true
}

// Refuse has writes of a resource fail; nil has none fail.
func (s *Server) Refuse(refusal *Refusal) {
	defer s.lock()()
	s.refusal = refusal
}

// Rotate has the key and the tokens that were given so far be refused.
func (s *Server) Rotate() {
	defer s.lock()()
	s.count++
	s.token, s.key = fmt.Sprintf("token-%d", s.count), fmt.Sprintf("key-%d", s.count)
}

// Metadata returns what an instance was given under a key; "" for nothing.
func (s *Server) Metadata(instance, key string) string {
	defer s.lock()()
	metadata, _ := s.resources[Path("instances/"+instance)]["metadata"].(object)
	items, _ := metadata["items"].([]any)
	for _, one := range items {
		if item, _ := one.(object); item["key"] == key {
			return fmt.Sprint(item["value"])
		}
	}
	return ""
}

// Copy makes an instance with a boot disk in the likeness of another, as others do, with labels of its own.
func (s *Server) Copy(from, name string, labels map[string]any) error {
	defer s.lock()()
	raw, err := json.Marshal(s.resources[Path("instances/"+from)])
	if err != nil {
		return fmt.Errorf("copying the instance %s: %w", from, err)
	}
	var made object
	if err := json.Unmarshal(raw, &made); err != nil {
		return fmt.Errorf("copying the instance %s: %w", from, err)
	}
	if made == nil {
		return fmt.Errorf("copying the instance %s: it is not there", from)
	}
	disk, _ := made["disks"].([]any)[0].(object)
	boot := s.resources[strings.TrimPrefix(fmt.Sprint(disk["source"]), base)]
	// The image may not be there any more.
	disk["source"] = s.bootDisk(strings.TrimSuffix(Path(""), "/"), name, object{
		"sourceImage": boot["sourceImage"], "diskSizeGb": boot["sizeGb"], "diskType": boot["type"],
	})
	made["name"], made["labels"], made["status"] = name, labels, "RUNNING"
	s.keep(Path("instances/"+name), made)
	if missing := s.completeInstance(Path("instances/"+name), made); missing != "" {
		delete(s.resources, Path("instances/"+name))
		return fmt.Errorf("copying the instance %s: there is no %s", from, missing)
	}
	return nil
}
