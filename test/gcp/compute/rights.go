package compute

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// implied are the permissions that Google requires for a field of a body, by what the request itself requires.
var implied = map[string][]struct{ field, permission string }{
	"compute.instanceGroups.update": {{"instances", "compute.instances.use"}},
	"compute.disks.create": {
		{"sourceImage", "compute.images.useReadOnly"},
		{"labels", "compute.disks.setLabels"},
		{"params.resourceManagerTags", "compute.disks.createTagBinding"},
	},
	"compute.instances.create": {
		{"disks.initializeParams", "compute.disks.create"},
		{"disks.initializeParams.sourceImage", "compute.images.useReadOnly"},
		{"disks.initializeParams.labels", "compute.disks.setLabels"},
		{"disks.initializeParams.resourceManagerTags", "compute.disks.createTagBinding"},
		{"disks.source", "compute.disks.use"},
		{"networkInterfaces.subnetwork", "compute.subnetworks.use"},
		{"networkInterfaces.accessConfigs", "compute.subnetworks.useExternalIp"},
		{"labels", "compute.instances.setLabels"},
		{"metadata.items", "compute.instances.setMetadata"},
		{"tags.items", "compute.instances.setTags"},
		{"serviceAccounts", "compute.instances.setServiceAccount"},
		{"serviceAccounts", "iam.serviceAccounts.actAs"},
		{"params.resourceManagerTags", "compute.instances.createTagBinding"},
	},
}

// permits returns whether the client has the permissions that Google requires for a request, and refuses it otherwise.
// What is no project's, such as who the client is, requires none.
func (s *Server) permits(w http.ResponseWriter, r *http.Request) bool {
	if s.allowed == nil || !strings.Contains(r.URL.Path, "/projects/") {
		return true
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, Refusal{Status: http.StatusBadRequest, Reason: "parseError", Message: err.Error()})
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	var body any
	_ = json.Unmarshal(raw, &body) // whoever reads it reports what it is not
	needed := []string{permissionOf(r)}
	for _, one := range implied[needed[0]] {
		if has(body, strings.Split(one.field, ".")...) {
			needed = append(needed, one.permission)
		}
	}
	for _, permission := range needed {
		if !s.allowed(permission) {
			refuse(w, Refusal{
				Status: http.StatusForbidden, Reason: "forbidden",
				Message: "Required '" + permission + "' permission for '" + strings.TrimPrefix(r.URL.Path, "/compute/v1/") + "'",
			})
			return false
		}
	}
	return true
}

// permissionOf is the permission that a request's method requires, whatever its body says.
func permissionOf(r *http.Request) string {
	_, resource, _ := strings.Cut(r.URL.Path, "/projects/")
	if _, method, ok := strings.Cut(resource, ":"); ok {
		return "cloudasset.assets." + method
	}
	// What is left begins with the kind of resource, beside a project, a zone or a region itself.
	parts := strings.Split(resource, "/")[1:]
	switch {
	case len(parts) == 0:
		parts = []string{"projects", resource}
	case parts[0] == "global":
		parts = parts[1:]
	case len(parts) > 2:
		parts = parts[2:]
	}
	kind := parts[0]
	switch {
	case kind == "operations":
		return "compute.zoneOperations.get"
	case kind == "instanceGroups" && len(parts) > 2:
		return "compute.instanceGroups." + map[bool]string{true: "list", false: "update"}[parts[2] == "listInstances"]
	case len(parts) > 2 && parts[1] == "family":
		return "compute." + kind + ".getFromFamily"
	case len(parts) > 2:
		return "compute." + kind + "." + parts[2]
	case len(parts) == 2:
		return "compute." + kind + "." + map[string]string{http.MethodGet: "get", http.MethodDelete: "delete"}[r.Method]
	}
	return "compute." + kind + "." + map[string]string{http.MethodGet: "list", http.MethodPost: "create"}[r.Method]
}

// has returns whether a body has a field that says something, in any item of the lists on its path.
func has(value any, path ...string) bool {
	switch value := value.(type) {
	case object:
		if len(path) > 0 {
			return has(value[path[0]], path[1:]...)
		}
		return len(value) > 0
	case []any:
		inItem := func(item any) bool { return has(item, path...) }
		return len(path) == 0 && len(value) > 0 || slices.ContainsFunc(value, inItem)
	}
	return value != nil && value != "" && len(path) == 0
}
