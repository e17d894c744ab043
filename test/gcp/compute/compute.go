// Package compute simulates as much of Google's Compute Engine as the module gcp uses, on loopback: sign-in by a service
// account's key, instances, their disks, instance groups, and the search by which instances are listed. A proxy leads
// Google's names to it, and its authority is trusted for them, so that no client needs another address. It knows no
// quota, and no rule about what goes together.
package compute

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/calls"
)

const (
	// Project is where there is a cluster.
	Project = "demo-project"
	// Zone is the one that its instances are in.
	Zone = "us-central1-a"

	// base begins the links of resources.
	base = "https://www.googleapis.com/compute/v1/"
	// signsIn is where keys are exchanged for tokens.
	signsIn = "https://oauth2.googleapis.com/token"
)

type object = map[string]any

// Server is a Compute Engine that runs. It refuses nothing but what is not there.
type Server struct {
	// Calls counts the requests.
	Calls calls.Log

	latency time.Duration
	allowed func(permission string) bool
	reach   *reach

	mutex sync.Mutex
	// token is what a request must have, and key the ID of the key that it is given for.
	token, key string
	// resources are by their path, from projects/ on; gone are those of others that are not there any more.
	resources map[string]object
	gone      map[string]bool
	// members are the links of the instances in groups, by the path of a group.
	members    map[string][]string
	operations []*operation
	writes     []string
	// refusal is the path of what is refused, and why.
	refusal *Refusal
	count   int
}

// Refusal is an answer in place of what is requested.
type Refusal struct {
	// Path is that of the request's resource, from projects/ on.
	Path            string
	Status          int
	Reason, Message string
}

// Options say how a Compute Engine behaves.
type Options struct {
	// Dir is the folder that the certificate is written into.
	Dir string
	// Latency is how long a write takes: its operation runs so long. Zero carries writes out at once.
	Latency time.Duration
	// Allowed returns whether the client has a permission; nil is all. It is asked for each that a request requires.
	Allowed func(permission string) bool
}

// Start starts a Compute Engine on loopback.
func Start(o Options) (*Server, error) {
	s := &Server{
		latency: o.Latency, allowed: o.Allowed, token: "token-0", key: "key-0",
		resources: map[string]object{}, gone: map[string]bool{}, members: map[string][]string{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST oauth2.googleapis.com/token", s.signIn)
	const zone = "compute.googleapis.com/compute/v1/projects/{project}/zones/{zone}"
	mux.HandleFunc("GET "+zone+"/operations/{name}", s.operation)
	mux.HandleFunc("POST "+zone+"/operations/{name}/wait", s.operation)
	mux.HandleFunc("POST "+zone+"/{kind}", s.insert)
	mux.HandleFunc("GET "+zone+"/{kind}", s.list)
	mux.HandleFunc("GET "+zone+"/{kind}/{name}", s.get)
	mux.HandleFunc("DELETE "+zone+"/{kind}/{name}", s.delete)
	mux.HandleFunc("POST "+zone+"/{kind}/{name}/{action}", s.act)
	mux.HandleFunc("GET compute.googleapis.com/compute/v1/projects/", s.get)
	mux.HandleFunc("GET cloudasset.googleapis.com/v1/projects/{search}", s.search)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(w, r.Host+r.URL.Path) })
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(mux, w, r) })
	var err error
	if s.reach, err = newReach(o.Dir, handler); err != nil {
		return nil, fmt.Errorf("starting the simulated Compute Engine: %w", err)
	}
	return s, nil
}

// Close ends it.
func (s *Server) Close() { s.reach.close() }

// Environment is what a run has from the cluster.
func (s *Server) Environment() map[string]string {
	return map[string]string{"HTTPS_PROXY": s.reach.proxy.URL, "SSL_CERT_FILE": s.reach.certificate}
}

// callOf names a request for the log.
func callOf(r *http.Request) string {
	switch {
	case !strings.Contains(r.URL.Path, "/projects/"):
		return calls.Login + r.Host
	case strings.Contains(r.URL.Path, "/operations/"):
		return calls.Poll + "operations"
	}
	return permissionOf(r)
}

func (s *Server) serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	s.Calls.Note(callOf(r))
	defer s.lock()()
	if r.Host != "oauth2.googleapis.com" && r.Header.Get("Authorization") != "Bearer "+s.token {
		refuse(w, Refusal{
			Status: http.StatusUnauthorized, Reason: "authError", Message: "Request had invalid authentication credentials.",
		})
		return
	}
	if !s.permits(w, r) {
		return
	}
	if s.refusal != nil && r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+s.refusal.Path) {
		refuse(w, *s.refusal)
		return
	}
	mux.ServeHTTP(w, r)
}

// lock returns how the lock is released that it takes. What was due has ended by then.
func (s *Server) lock() (unlock func()) {
	s.mutex.Lock()
	for _, one := range s.operations {
		if !one.ended && !time.Now().Before(one.due) {
			one.ended = true
			one.end()
		}
	}
	return s.mutex.Unlock
}

// signIn takes an assertion that names the key which counts. It does not check the signature.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	encoded, _, _ := strings.Cut(r.PostFormValue("assertion"), ".")
	var header struct {
		Key string `json:"kid"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(raw, &header)
	}
	if err != nil || header.Key != s.key {
		respond(w, http.StatusBadRequest, object{"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
		return
	}
	respond(w, http.StatusOK, object{"access_token": s.token, "token_type": "Bearer", "expires_in": 3600})
}

// pathOf is the path of what a request is about, from projects/ on.
func pathOf(r *http.Request) string {
	return strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/compute/v1/"), "/"+r.PathValue("action"))
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	name := pathOf(r)
	found := s.resources[name]
	switch {
	case found != nil:
		respond(w, http.StatusOK, found)
	case strings.Contains(name, "/instances/") || strings.Contains(name, "/disks/") || s.gone[name]:
		notFound(w, name)
	default:
		// What others have made: zones, machine types, images, networks, groups.
		respond(w, http.StatusOK, object{
			"name": path.Base(name), "selfLink": base + name, "status": "UP", "guestCpus": 4, "memoryMb": 15360, "diskSizeGb": "16",
		})
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	items := []object{}
	for _, name := range slices.Sorted(maps.Keys(s.resources)) {
		if path.Dir(name) == pathOf(r) {
			items = append(items, s.resources[name])
		}
	}
	respond(w, http.StatusOK, object{"items": items})
}

func (s *Server) insert(w http.ResponseWriter, r *http.Request) {
	var asked object
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuse(w, Refusal{Status: http.StatusBadRequest, Reason: "parseError", Message: err.Error()})
		return
	}
	name := pathOf(r) + "/" + fmt.Sprint(asked["name"])
	if s.resources[name] != nil {
		refuse(w, Refusal{
			Status: http.StatusConflict, Reason: "alreadyExists", Message: "The resource '" + name + "' already exists",
		})
		return
	}
	s.writes = append(s.writes, "insert "+r.PathValue("kind")+"/"+fmt.Sprint(asked["name"]))
	status := map[string]string{"instances": "RUNNING", "disks": "READY"}[r.PathValue("kind")]
	s.keep(name, asked)
	if r.PathValue("kind") == "instances" {
		if missing := s.completeInstance(name, asked); missing != "" {
			delete(s.resources, name)
			notFound(w, missing)
			return
		}
	}
	asked["status"] = "PROVISIONING"
	s.begin(w, r, name, "insert", func() { asked["status"] = status })
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	name := pathOf(r)
	found := s.resources[name]
	if found == nil {
		notFound(w, name)
		return
	}
	s.writes = append(s.writes, "delete "+r.PathValue("kind")+"/"+r.PathValue("name"))
	if r.PathValue("kind") == "instances" {
		found["status"] = "STOPPING"
	}
	s.begin(w, r, name, "delete", func() { s.drop(name) })
}

// act changes an instance, or who is in an instance group.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	var asked object
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil && err != io.EOF {
		refuse(w, Refusal{Status: http.StatusBadRequest, Reason: "parseError", Message: err.Error()})
		return
	}
	name, action := pathOf(r), r.PathValue("action")
	if r.PathValue("kind") == "instanceGroups" {
		s.group(w, r, name, action, asked)
		return
	}
	found := s.resources[name]
	if found == nil {
		notFound(w, name)
		return
	}
	s.writes = append(s.writes, action+" "+r.PathValue("kind")+"/"+r.PathValue("name"))
	switch action {
	case "setLabels":
		found["labels"] = asked["labels"]
	case "setTags":
		found["tags"] = asked
	case "setMetadata":
		found["metadata"] = asked
	case "setServiceAccount":
		found["serviceAccounts"] = []any{asked}
	case "stop":
		found["status"] = "TERMINATED"
	case "start":
		found["status"] = "RUNNING"
	case "setDeletionProtection":
		found["deletionProtection"] = r.URL.Query().Get("deletionProtection") != "false"
	default:
		refuse(w, Refusal{
			Status: http.StatusBadRequest, Reason: "invalid", Message: "the simulated Compute Engine does not know " + action,
		})
		return
	}
	s.fingerprint(found)
	s.begin(w, r, name, action, func() {})
}

func (s *Server) group(w http.ResponseWriter, r *http.Request, name, action string, asked object) {
	named, _ := asked["instances"].([]any)
	for _, one := range named {
		link := fmt.Sprint(one.(object)["instance"])
		s.members[name] = slices.DeleteFunc(s.members[name], func(other string) bool { return other == link })
		if action == "addInstances" {
			s.members[name] = append(s.members[name], link)
		}
	}
	if action == "listInstances" {
		items := []object{}
		for _, link := range s.members[name] {
			items = append(items, object{"instance": link, "status": "RUNNING"})
		}
		respond(w, http.StatusOK, object{"items": items})
		return
	}
	s.writes = append(s.writes, action+" "+r.PathValue("kind")+"/"+r.PathValue("name"))
	s.begin(w, r, name, action, func() {})
}

// search lists instances as Cloud Asset Inventory does.
func (s *Server) search(w http.ResponseWriter, r *http.Request) {
	label, value, _ := strings.Cut(strings.TrimPrefix(r.URL.Query().Get("query"), "labels."), "=")
	results := []object{}
	for _, name := range slices.Sorted(maps.Keys(s.resources)) {
		one := s.resources[name]
		labels, _ := one["labels"].(object)
		if strings.Contains(name, "/instances/") && labels[label] == value {
			results = append(results, object{
				"name": "//compute.googleapis.com/" + name, "assetType": "compute.googleapis.com/Instance",
				"labels": labels, "createTime": one["creationTimestamp"],
			})
		}
	}
	respond(w, http.StatusOK, object{"results": results})
}

func notFound(w http.ResponseWriter, name string) {
	refuse(w, Refusal{
		Status: http.StatusNotFound, Reason: "notFound", Message: "The resource '" + name + "' was not found",
	})
}

func refuse(w http.ResponseWriter, r Refusal) {
	respond(w, r.Status, object{"error": object{
		"code": r.Status, "message": r.Message,
		"errors": []object{{"message": r.Message, "domain": "global", "reason": r.Reason}},
	}})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever asked may have gone
}
